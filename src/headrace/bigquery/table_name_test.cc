#include "headrace/bigquery/table_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TableName, Forms) {
  struct Case {
    std::string text;
    TableName name;
  };
  const Case cases[] = {
      {"p.d.t", {"p", "d", "t"}},
      {"my-project:d.t", {"my-project", "d", "t"}},
      {"d.t", {"default", "d", "t"}},
      {"projects/p/datasets/d/tables/t", {"p", "d", "t"}},
      {"projects/example.com:p/datasets/d/tables/t", {"example.com:p", "d", "t"}},
      {"example.com:p:d.t", {"example.com:p", "d", "t"}},
      {"example.com:p.d.t", {"example.com:p", "d", "t"}},
      {"p.d.t with space", {"p", "d", "t with space"}},
      {"p.d.таблица_表", {"p", "d", "таблица_表"}},
      {"p.d.t-1", {"p", "d", "t-1"}},
      {"projects.d.t", {"projects", "d", "t"}},
  };
  for (const Case& c : cases) {
    auto name = ParseTableName(c.text, "default");
    ASSERT_TRUE(name.ok()) << c.text << name.status();
    EXPECT_EQ(*name, c.name) << c.text;
    EXPECT_EQ(*ParseTableName(name->ResourcePath()), c.name);
    EXPECT_EQ(*ParseTableName(name->ToString()), c.name);
  }
  EXPECT_EQ(ParseTableName("p.d.t")->ResourcePath(), "projects/p/datasets/d/tables/t");
}

// Spec 12: a component that is blank, has edge space or a slash is named.
TEST(TableName, Refusals) {
  struct Case {
    std::string text;
    std::string says;
    Code code = Code::kInvalidArgument;
  };
  const Case cases[] = {
      {"", "names no dataset"},
      {"t", "names no dataset"},
      {"d.t", "billing_project"},
      {"a.b.c.d", "too many parts"},
      {"x:a.b.c.d", "too many parts"},
      {".d.t", "project of table is blank"},
      {":d.t", "project of table is blank"},
      {":p.d.t", "empty domain"},
      {"p..t", "dataset of table is blank"},
      {"p.d.", "table part of table is blank"},
      {"p.d. ", "table part of table is blank"},
      {" p.d.t", "project of table \" p\" has white space"},
      {"p.d .t", "dataset of table \"d \" has white space"},
      {"p.d.t\n", "table part of table"},
      {"p.d.t\xC2\xA0", "table part of table"},
      {"p.d.\xE3\x80\x80t", "table part of table"},
      {"p.d/e.t", "slash"},
      {"p.d.t/x", "slash"},
      {"projects/p/datasets/d", "slash"},
      {"projects/p/datasets/d/tables/t/x", "slash"},
      {"projects/p/datasets//tables/t", "dataset of table is blank"},
      {"projects/p/datasets/d/tables/ t", "white space"},
      {"p.d.t$20260101", "decorator \"$20260101\"", Code::kUnimplemented},
      {"p.d.t$__NULL__", "decorator", Code::kUnimplemented},
      {"p:d.t@-3600000", "snapshot_time", Code::kUnimplemented},
  };
  for (const Case& c : cases) {
    auto name = ParseTableName(c.text);
    ASSERT_FALSE(name.ok()) << c.text;
    EXPECT_THAT(name.status().message(), HasSubstr(c.says)) << c.text;
    EXPECT_EQ(CodeOf(name.status()), c.code) << c.text;
    EXPECT_EQ(GetErrorInfo(name.status())->resource, "table");
  }
}

}  // namespace
}  // namespace headrace::bigquery
