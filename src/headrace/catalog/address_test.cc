#include "headrace/catalog/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::catalog {
namespace {

using ::testing::HasSubstr;

TEST(Address, WhatIsTaken) {
  struct Case {
    AddressRole role;
    std::string_view text;
    AddressKind kind;
    std::string_view target;
  };
  for (const Case& one : {
           Case{AddressRole::kSource, "bq:p.d.t", AddressKind::kBigQuery, "p.d.t"},
           Case{AddressRole::kSource, "bq:example.com:p.d.t", AddressKind::kBigQuery, "example.com:p.d.t"},
           Case{AddressRole::kSource, "bq:projects/p/datasets/d/tables/t", AddressKind::kBigQuery, "projects/p/datasets/d/tables/t"},
           Case{AddressRole::kDestination, "./flights/", AddressKind::kLocalPath, "./flights/"},
           Case{AddressRole::kDestination, "a.parquet", AddressKind::kLocalPath, "a.parquet"},
           Case{AddressRole::kDestination, "./a:b/", AddressKind::kLocalPath, "./a:b/"},
           Case{AddressRole::kDescribed, "a.csv", AddressKind::kLocalPath, "a.csv"},
           Case{AddressRole::kDescribed, "bq:p.d.t", AddressKind::kBigQuery, "p.d.t"},
       }) {
    SCOPED_TRACE(one.text);
    auto address = ParseAddress(one.text, one.role);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->kind, one.kind);
    EXPECT_EQ(address->target, one.target);
    EXPECT_EQ(address->text, one.text);
  }
}

TEST(Address, WhatIsRefusedSaysWhatWorks) {
  struct Case {
    AddressRole role;
    std::string_view text;
    std::string_view reason;
    std::string_view says;
  };
  constexpr auto kFrom = AddressRole::kSource;
  constexpr auto kTo = AddressRole::kDestination;
  for (const Case& one : {
           Case{kFrom, "", "INVALID_OPTION", "the source is empty"},
           Case{kTo, "", "INVALID_OPTION", "the destination is empty"},
           Case{kFrom, "bq:", "INVALID_OPTION", "names no table"},
           Case{kFrom, "bt:p/i/t", "UNSUPPORTED", "a Bigtable table"},
           Case{kTo, "bt:p/i/t", "UNSUPPORTED", "a Bigtable table"},
           Case{kFrom, "gs://b/o", "UNSUPPORTED", "in Cloud Storage"},
           Case{kTo, "gs://b/o", "UNSUPPORTED", "in Cloud Storage"},
           Case{kTo, "bq:p.d.t", "UNSUPPORTED", "which this version only reads"},
           Case{kFrom, "-", "UNSUPPORTED", "standard input"},
           Case{kTo, "-", "UNSUPPORTED", "standard output"},
           Case{kFrom, "p.d.t", "UNSUPPORTED", "for the BigQuery table write bq:p.d.t"},
           Case{kFrom, "./a.parquet", "UNSUPPORTED", "a file or directory"},
           Case{kFrom, "bigquery:p.d.t", "UNSUPPORTED", "the prefix is 'bq:'"},
           Case{kTo, "s3://b/o", "UNSUPPORTED", "of an unknown kind ('s3:'"},
           Case{kTo, "note:1.parquet", "UNSUPPORTED", "put './' before it"},
       }) {
    SCOPED_TRACE(one.text);
    auto status = ParseAddress(one.text, one.role).status();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(GetErrorInfo(status)->reason, one.reason);
    EXPECT_THAT(status.message(), HasSubstr(std::string(one.says)));
    EXPECT_THAT(status.message(), HasSubstr(one.role == kFrom  ? "bq:project.dataset.table"
                                            : one.text.empty() ? "destination"
                                                               : std::string(one.text)));
  }
}

TEST(Address, AbsoluteKeepsTheTrailingSlashAndOtherKinds) {
  EXPECT_THAT(Absolute({AddressKind::kLocalPath, "./out/", "./out/"}).target, ::testing::MatchesRegex("/.*[^.]/out/"));
  for (const auto& [given, absolute] : {
           std::pair("/a/./b//c.parquet", "/a/b/c.parquet"),
           // b may be a symbolic link, and then b/.. is not a: a resume would go on in another directory.
           {"/a/b/../c.parquet", "/a/b/../c.parquet"},
           {"/a/b/../", "/a/b/../"},
           {"/a/b/..", "/a/b/.."},
           {"/a/..c/.d", "/a/..c/.d"},
           {"/a/.", "/a/"},
           {"/a//", "/a/"},
           {"//a", "/a"},
           {"/", "/"},
           {"/.", "/"},
       }) {
    EXPECT_EQ(Absolute({AddressKind::kLocalPath, given, given}).target, absolute) << given;
  }
  Address table{AddressKind::kBigQuery, "bq:p.d.t", "p.d.t"};
  EXPECT_EQ(Absolute(table), table);
}

}  // namespace
}  // namespace headrace::catalog
