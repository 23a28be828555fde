#include "headrace/bigquery/read/internal/field_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::bigquery {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<arrow::Schema> Schema(const std::vector<std::string>& names) {
  arrow::FieldVector fields;
  for (const auto& name : names) fields.push_back(arrow::field(name, arrow::int64()));
  return arrow::schema(fields);
}

std::shared_ptr<arrow::DataType> Struct(const std::vector<std::string>& names) { return arrow::struct_(Schema(names)->fields()); }

FieldSelection Parse(const std::vector<std::string>& paths) {
  auto selection = FieldSelection::Parse(paths);
  EXPECT_TRUE(selection.ok()) << selection.status();
  return *selection;
}

arrow::Result<std::vector<uint32_t>> Columns(const arrow::Schema& wire, const std::vector<std::string>& paths) {
  return Parse(paths).Columns(wire);
}

TEST(FieldSelection, WhatIsSent) {
  EXPECT_TRUE(Parse({}).all());
  EXPECT_THAT(Parse({}).Paths(), ElementsAre());
  EXPECT_THAT(Parse({"b", "a.x"}).Paths(), ElementsAre("b", "a.x"));
  // A column that is named as a whole and by its fields is read whole, whichever comes first.
  EXPECT_THAT(Parse({"a.x", "b", "A"}).Paths(), ElementsAre("a", "b"));
  EXPECT_THAT(Parse({"a", "b", "a.x", "A.y.z"}).Paths(), ElementsAre("a", "b"));
  EXPECT_THAT(Parse({"a.b.c", "x", "a.b.d", "a.e"}).Paths(), ElementsAre("a.b.c", "a.b.d", "a.e", "x"));
  EXPECT_THAT(Parse({"a.b.c", "A.B"}).Paths(), ElementsAre("a.b"));
  EXPECT_THAT(Parse({"`a b`.`c`", "größe.`x`"}).Paths(), ElementsAre("a b.c", "größe.x"));
}

TEST(FieldSelection, PathsThatAreNone) {
  struct Case {
    std::vector<std::string> paths;
    std::string says;
  };
  std::string deep = "a";
  for (int i = 0; i < 16; ++i) deep += ".a";
  for (const Case& c :
       {Case{{""}, "blank"}, Case{{" "}, "blank"}, Case{{"a", " \t"}, "blank"}, Case{{"a."}, "\"a.\""}, Case{{".a"}, "\".a\""},
        Case{{"a..b"}, "\"a..b\""}, Case{{"a. .b"}, "no path"}, Case{{"`a"}, "no path"}, Case{{"`a`b"}, "no path"}, Case{{"``"}, "no path"},
        Case{{"a", "A"}, "\"A\" twice"}, Case{{"a.b", "c", "A.B"}, "\"A.B\" twice"}, Case{{deep}, "deeper"}}) {
    const auto status = FieldSelection::Parse(c.paths).status();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("selected_fields"), HasSubstr(c.says)));
    EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
  }
}

TEST(FieldSelection, OrderAskedAnyCaseFirstMentionCounts) {
  const auto schema = Schema({"a", "B", "c"});
  EXPECT_THAT(*Columns(*schema, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(*Columns(*schema, {"C", "a", "b"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(*Columns(*schema, {"`c`", "a", "b"}), ElementsAre(2, 0, 1));
  EXPECT_THAT(Columns(*schema, {"a", "d"}).status().message(), AllOf(HasSubstr("\"d\""), HasSubstr("a, B, c")));
  EXPECT_THAT(Columns(*schema, {"a"}).status().message(), HasSubstr("ignored selected_fields"));
  EXPECT_EQ(CodeOf(Columns(*schema, {"a"}).status()), Code::kInternal);
}

TEST(FieldSelection, FieldsInsideStructsAndArraysOfStructs) {
  const auto inner = arrow::struct_({arrow::field("p", arrow::int64()), arrow::field("q", arrow::list(Struct({"Deep"})))});
  const auto wire = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("Place", inner),
                                   arrow::field("visits", arrow::list(Struct({"at"}))), arrow::field("big", arrow::large_list(inner))});
  EXPECT_THAT(*Columns(*wire, {"VISITS.At", "place.q.deep", "big", "ID", "PLACE.p"}), ElementsAre(2, 1, 3, 0));
  EXPECT_THAT(*Columns(*wire, {"big.q.deep", "big.p", "id", "visits", "place"}), ElementsAre(3, 0, 2, 1));
}

TEST(FieldSelection, WhatIsNotThereIsNamedWithWhatIs) {
  const auto wire = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("place", Struct({"x", "y"})),
                                   arrow::field("visits", arrow::list(Struct({"at", "by"})))});
  struct Case {
    std::vector<std::string> paths;
    std::vector<std::string> says;
  };
  for (const Case& c :
       {Case{{"id", "nothere"}, {"\"nothere\"", "p.d.t has no", "it has id, place, visits"}},
        Case{{"place.z"}, {"\"place.z\"", "\"place\" of p.d.t has no", "it has x, y"}},
        Case{{"Visits.to"}, {"\"Visits.to\"", "it has at, by"}}, Case{{"visits", "visits.to"}, {"\"visits.to\"", "it has at, by"}},
        Case{{"id.x"}, {"\"id\"", "no STRUCT", "int64"}}, Case{{"place.x.y"}, {"\"place.x\"", "no STRUCT"}}}) {
    const auto status = Parse(c.paths).CheckExists(*wire, "p.d.t");
    for (const auto& says : c.says) EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
    EXPECT_FALSE(GetErrorInfo(status)->column.empty());
  }
  EXPECT_TRUE(Parse({"VISITS.AT", "place"}).CheckExists(*wire, "p.d.t").ok());
  std::vector<std::string> many;
  many.reserve(100);
  for (int i = 0; i < 100; ++i) many.push_back("c" + std::to_string(i));
  EXPECT_THAT(Parse({"x"}).CheckExists(*Schema(many), "t").message(), HasSubstr("and 70 more"));
}

TEST(FieldSelection, AServerThatDoesNotPruneStructsIsRefused) {
  const auto wire = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("place", Struct({"x", "y"}))});
  const auto status = Columns(*wire, {"place.x", "id"}).status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("ignored selected_fields"), HasSubstr("\"place\""), HasSubstr("x, y")));
  EXPECT_EQ(CodeOf(status), Code::kInternal);
  EXPECT_TRUE(Columns(*wire, {"place.x", "id", "place"}).ok());
}

}  // namespace
}  // namespace headrace::bigquery
