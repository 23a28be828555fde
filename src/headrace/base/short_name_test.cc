#include "headrace/base/short_name.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(ShortName, KeepsTheEndOfALongName) {
  const std::string key = "CAISDEFB" + std::string(200, 'x') + "OAFIAVgBtail";
  struct Case {
    std::string name;
    std::string text;
  };
  for (const Case& c : {
           Case{"", ""},
           Case{"000000", "000000"},
           Case{"projects/p/locations/us/sessions/s1/streams/0", "projects/p/locations/us/sessions/s1/streams/0"},
           Case{"projects/my-project/locations/us/sessions/" + key + "/streams/" + key, ".../streams/CAISDEFB...OAFIAVgBtail"},
           Case{"projects/my-project/locations/us/sessions/" + key + "/streams/" + key + "/3", ".../streams/CAISDEFB...OAFIAVgBtail/3"},
           Case{"projects/my-project/locations/us/sessions/" + key, ".../us/sessions/CAISDEFB...OAFIAVgBtail"},
           Case{key, "CAISDEFB...OAFIAVgBtail"},
       }) {
    EXPECT_EQ(ShortName(c.name), c.text);
    EXPECT_LE(ShortName(c.name).size(), 64U);
  }
}

}  // namespace
}  // namespace headrace
