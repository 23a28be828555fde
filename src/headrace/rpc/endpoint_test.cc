#include "headrace/rpc/endpoint.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::rpc {
namespace {

using testing::HasSubstr;

struct Case {
  std::string value;
  std::string target;  // empty = refused
  bool plaintext = true;
};

// Fact 1.0 "Emulator endpoint", spec 10.
TEST(Endpoint, HostAndPortAreReadAtTheLastColon) {
  const Case cases[] = {
      {"localhost:9060", "localhost:9060"},
      {"127.0.0.1:1", "127.0.0.1:1"},
      {"h:65535", "h:65535"},
      {"h:00080", "h:80"},
      {"a:b:9060", "[a:b]:9060"},
      {"[::1]:9060", "[::1]:9060"},
      {"http://localhost:9060", "localhost:9060"},
      {"https://example.com", "example.com:443", false},
      {"https://example.com:8443", "example.com:8443", false},
      {"host:0", ""},
      {"host:65536", ""},
      {"host:99999999999999999999", ""},
      {"host:+80", ""},
      {"host:-80", ""},
      {"host:8o", ""},
      {"host:\xD9\xA3", ""},  // ARABIC-INDIC DIGIT THREE
      {" host:1", ""},
      {"host:1 ", ""},
      {"ho st:1", ""},
      {"host:1\n", ""},
      {"host\xC2\xA0:1", ""},
      {"host", ""},
      {"host:", ""},
      {":80", ""},
      {"", ""},
      {"http://host", ""},
      {"http://host:1/path", ""},
      {"https://", ""},
      {"ftp://host:1", ""},
  };
  for (const Case& c : cases) {
    auto endpoint = ParseEndpoint("bigquery_storage_endpoint", c.value);
    if (c.target.empty()) {
      ASSERT_FALSE(endpoint.ok()) << c.value;
      EXPECT_THAT(endpoint.status().message(), HasSubstr("bigquery_storage_endpoint \"" + c.value + "\""));
      EXPECT_EQ(CodeOf(endpoint.status()), Code::kInvalidArgument);
      continue;
    }
    ASSERT_TRUE(endpoint.ok()) << c.value << endpoint.status();
    EXPECT_EQ(endpoint->target(), c.target);
    EXPECT_EQ(endpoint->plaintext, c.plaintext);
  }
}

TEST(Endpoint, OptionWinsOverVariableWinsOverTheServicesHost) {
  ::unsetenv("BIGQUERY_STORAGE_EMULATOR_HOST");
  EXPECT_EQ(ResolveStorageEndpoint("")->target(), "bigquerystorage.googleapis.com:443");
  EXPECT_FALSE(ResolveStorageEndpoint("")->plaintext);
  ::setenv("BIGQUERY_STORAGE_EMULATOR_HOST", "emulator:1", 1);
  EXPECT_EQ(ResolveStorageEndpoint("")->target(), "emulator:1");
  EXPECT_EQ(ResolveStorageEndpoint("other:2")->target(), "other:2");
  ::setenv("BIGQUERY_STORAGE_EMULATOR_HOST", "emulator", 1);
  EXPECT_THAT(ResolveStorageEndpoint("").status().message(), HasSubstr("BIGQUERY_STORAGE_EMULATOR_HOST \"emulator\""));
  ::unsetenv("BIGQUERY_STORAGE_EMULATOR_HOST");
}

}  // namespace
}  // namespace headrace::rpc
