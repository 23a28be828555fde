#include "headrace/catalog/address.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/random.h"

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
           Case{AddressRole::kDestination, "-", AddressKind::kStandardStream, "-"},
           Case{AddressRole::kSource, "-", AddressKind::kStandardStream, "-"},
           Case{AddressRole::kSource, "a.csv", AddressKind::kLocalPath, "a.csv"},
           Case{AddressRole::kSource, "a.csv.gz", AddressKind::kLocalPath, "a.csv.gz"},
           Case{AddressRole::kSource, "sales.2024.parquet", AddressKind::kLocalPath, "sales.2024.parquet"},
           Case{AddressRole::kSource, "a.b.?", AddressKind::kLocalPath, "a.b.?"},
           Case{AddressRole::kSource, "./p.d.t", AddressKind::kLocalPath, "./p.d.t"},
           Case{AddressRole::kSource, "out/", AddressKind::kLocalPath, "out/"},
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
           Case{kFrom, "p.d.t", "UNSUPPORTED", "for the BigQuery table write bq:p.d.t"},
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

TEST(Address, SeveralSourcesAreAListOfFiles) {
  auto list = ParseSources({"a.csv", "./b.csv", "c/d.csv"});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->target, "a.csv");
  EXPECT_EQ(list->further, (std::vector<std::string>{"./b.csv", "c/d.csv"}));
  Address absolute = Absolute(*list, AddressRole::kSource);
  EXPECT_THAT(absolute.further, ::testing::Each(::testing::StartsWith("/")));
  EXPECT_EQ(*ParseSources({"bq:p.d.t"}), *ParseAddress("bq:p.d.t", AddressRole::kSource));
  for (const auto& [texts, says] : {std::pair(std::vector<std::string>{"bq:p.d.t", "a.csv"}, "'bq:p.d.t' is one of 2 sources"),
                                    {{"a.csv", "bq:p.d.t"}, "'bq:p.d.t' is one of 2"},
                                    {{"a.csv", "-"}, "'-' is one of 2"},
                                    {{"a.csv", "gs://b/c"}, "in Cloud Storage"},
                                    {{}, "the source is empty"}}) {
    EXPECT_THAT(ParseSources(texts).status().message(), HasSubstr(says));
  }
}

TEST(Address, AbsoluteKeepsTheTrailingSlashAndOtherKinds) {
  EXPECT_THAT(Absolute({AddressKind::kLocalPath, "./out/", "./out/"}, AddressRole::kDestination).target,
              ::testing::MatchesRegex("/.*[^.]/out/"));
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
    EXPECT_EQ(Absolute({AddressKind::kLocalPath, given, given}, AddressRole::kDestination).target, absolute) << given;
  }
  Address table{AddressKind::kBigQuery, "bq:p.d.t", "p.d.t"};
  EXPECT_EQ(Absolute(table, AddressRole::kSource), table);
  Address output{AddressKind::kStandardStream, "-", "-"};
  EXPECT_EQ(Absolute(output, AddressRole::kDestination), output);
}

TEST(Address, TheWorkingDirectoryIsNoPartOfAPattern) {
  std::string own = ::testing::TempDir() + "/address-" + SystemRandom()->Hex(8);
  std::string name = own + "/odd [1]*";
  std::filesystem::create_directories(name);
  auto before = std::filesystem::current_path();
  std::filesystem::current_path(name);
  std::string pattern = Absolute({AddressKind::kLocalPath, "x/*.csv", "x/*.csv"}, AddressRole::kSource).target;
  std::string file = Absolute({AddressKind::kLocalPath, "x.csv", "x.csv"}, AddressRole::kSource).target;
  std::filesystem::current_path(before);
  std::filesystem::remove_all(own);
  EXPECT_THAT(pattern, ::testing::EndsWith("/odd [[]1][*]/x/*.csv"));
  EXPECT_THAT(file, ::testing::EndsWith("/odd [1]*/x.csv"));
}

}  // namespace
}  // namespace headrace::catalog
