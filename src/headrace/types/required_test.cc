#include "headrace/types/required.h"

#include <functional>

#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using arrow::field;
using arrow::json::ArrayFromJSONString;

// Null marks below null STRUCTs, as Arrow's reader of Parquet makes them and its reader of JSON does not.
std::shared_ptr<arrow::Array> Marked(const std::shared_ptr<arrow::Array>& array) {
  auto data = array->data()->Copy();
  if (array->type_id() == arrow::Type::STRUCT) {
    const auto children = static_cast<const arrow::StructArray&>(*array).Flatten().ValueOrDie();
    for (size_t i = 0; i < children.size(); ++i) data->child_data[i] = Marked(children[i])->data();
  } else if (array->type_id() == arrow::Type::LIST) {
    data->child_data[0] = Marked(static_cast<const arrow::ListArray&>(*array).values())->data();
  }
  return arrow::MakeArray(data);
}

// Nullable STRUCTs with a REQUIRED field, whose type as Arrow reads it (the null mark on the field) and as it should be differ only in
// nullability.
std::shared_ptr<arrow::RecordBatch> Batch(const std::shared_ptr<arrow::Field>& column, const std::string& json) {
  const auto nullable = [](const auto& self, const std::shared_ptr<arrow::DataType>& type) -> std::shared_ptr<arrow::DataType> {
    arrow::FieldVector fields;
    for (const auto& child : type->fields()) fields.push_back(child->WithNullable(true)->WithType(self(self, child->type())));
    if (type->id() == arrow::Type::STRUCT) return arrow::struct_(fields);
    return type->id() == arrow::Type::LIST ? arrow::list(fields[0]) : type;
  };
  const auto array = Marked(*ArrayFromJSONString(nullable(nullable, column->type()), json));
  const auto retype = [](const auto& self, const std::shared_ptr<arrow::ArrayData>& data,
                         const std::shared_ptr<arrow::DataType>& type) -> void {
    data->type = type;
    for (size_t i = 0; i < data->child_data.size(); ++i) {
      data->child_data[i] = data->child_data[i]->Copy();
      self(self, data->child_data[i], type->field(static_cast<int>(i))->type());
    }
  };
  auto data = array->data()->Copy();
  retype(retype, data, column->type());
  return arrow::RecordBatch::Make(arrow::schema({column}), array->length(), {arrow::MakeArray(data)});
}

const auto kRequired = field("w", arrow::int64(), false);
const auto kStruct = field("s", arrow::struct_({kRequired, field("x", arrow::utf8())}));
const auto kLists = field("l", arrow::list(field("element", arrow::struct_({field("v", arrow::int64()), kStruct}), false)), false);
const auto kDeep = field("d", arrow::struct_({field("e", arrow::struct_({kRequired}), false)}));
const auto kTwo = field("d", arrow::struct_({field("e", arrow::struct_({kRequired})), field("x", arrow::utf8())}));
const auto kThree = field("c", arrow::struct_({kTwo}));

struct Case {
  std::shared_ptr<arrow::Field> column;
  std::string json;
  std::string error;  // empty: all nulls are below null STRUCTs
};

TEST(DropNullsBelowNull, NullsThatAreNoValuesGoAndOthersAreErrors) {
  const Case cases[] = {
      {kStruct, R"([{"w": 1, "x": null}, null, {"w": 3, "x": "a"}])", ""},
      {kStruct, R"([null, null])", ""},
      {kStruct, R"([{"w": 1, "x": ""}, {"w": null, "x": "b"}])", "column s.w, row 101: null, but the column is REQUIRED"},
      {kLists, R"([[{"v": 1, "s": null}], [], [{"v": null, "s": {"w": 1, "x": ""}}, {"v": 2, "s": null}]])", ""},
      {kLists, R"([[], [{"v": 1, "s": null}, {"v": 1, "s": {"w": null, "x": ""}}]])", "column l.s.w, row 101"},
      {kLists, R"([[{"v": 1, "s": null}], [null]])", "column l, row 101"},
      {kDeep, R"([null, {"e": {"w": 5}}])", ""},
      {kDeep, R"([null, {"e": null}])", "column d.e, row 101"},
      {kRequired, "[1, null]", "column w, row 101"},
      // A slice without a null of its own, of a STRUCT with nulls elsewhere: it was read by the marks of the rows before it.
      {kTwo, R"([null, {"e": null, "x": "keep"}])", ""},
      {kTwo, R"([null, {"e": null, "x": "keep"}, {"e": {"w": 1}, "x": null}, null])", ""},
      {kTwo, R"([{"e": null, "x": "a"}, null, {"e": null, "x": "b"}])", ""},
      {kThree, R"([{"d": null}, {"d": {"e": null, "x": "keep"}}])", ""},
      {kThree, R"([null, {"d": {"e": null, "x": "keep"}}, {"d": null}])", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.column->ToString() + " " + c.json);
    for (const int64_t cut : {0, 1}) {  // a slice has its own first row
      const auto whole = Batch(c.column, c.json);
      const auto batch = whole->Slice(cut);
      const auto result = DropNullsBelowNull(batch, 100 + cut);
      if (!c.error.empty()) {
        EXPECT_THAT(result.status().message(), testing::HasSubstr(c.error));
        continue;
      }
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE((*result)->ValidateFull().ok()) << (*result)->ValidateFull();
      ASSERT_EQ((*result)->num_rows(), batch->num_rows());
      for (int64_t row = 0; row < batch->num_rows(); ++row) {
        EXPECT_EQ((*(*result)->column(0)->GetScalar(row))->ToString(), (*batch->column(0)->GetScalar(row))->ToString()) << row;
      }
      const std::function<void(const arrow::Field&, const arrow::Array&)> check = [&](const arrow::Field& of, const arrow::Array& array) {
        EXPECT_TRUE(of.nullable() || array.null_count() == 0) << of.ToString();
        for (int i = 0; i < of.type()->num_fields(); ++i) {
          check(*of.type()->field(i), *(of.type()->id() == arrow::Type::LIST ? static_cast<const arrow::ListArray&>(array).values()
                                                                             : static_cast<const arrow::StructArray&>(array).field(i)));
        }
      };
      check(*c.column, *(*result)->column(0));
    }
  }
}

TEST(DropNullsBelowNull, WhatHasNoneIsTheSameBatch) {
  const auto batch = Batch(kStruct, R"([{"w": 1, "x": null}])");
  EXPECT_EQ((*DropNullsBelowNull(batch, 0)).get(), batch.get());
}

}  // namespace
}  // namespace headrace
