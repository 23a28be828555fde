// The tree behind JsonRowWriter and RestRowWriter: one node a column or field, compiled from the canonical schema and bound to the arrays
// of one batch at a time. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/record_batch.h>

#include "headrace/types/column_text.h"
#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

/// kObjects: {"name":value}; kCells: REST's {"f":[{"v":value}]}.
enum class RowShape { kObjects, kCells };

class RowText {
 public:
  static arrow::Result<std::unique_ptr<RowText>> Make(std::shared_ptr<arrow::Schema> canonical, RowShape shape, TextForm form);

  arrow::Status Bind(const arrow::RecordBatch& batch);
  /// Row `index` of the bound batch; errors name it as `row`.
  arrow::Status Append(int64_t index, int64_t row, std::string* out);

 private:
  struct Node {
    std::string path;
    std::string key;  // "name": with its quotes, escaped
    bool repeated = false;
    std::unique_ptr<ScalarText> scalar;  // null for STRUCT
    std::vector<Node> fields;
    std::shared_ptr<arrow::DataType> value_type;  // of the element where repeated
    std::shared_ptr<arrow::Array> lists;          // where repeated
    std::shared_ptr<arrow::Array> values;
  };

  RowText(std::shared_ptr<arrow::Schema> schema, RowShape shape) : schema_(std::move(schema)), shape_(shape) {}

  static arrow::Result<Node> Compile(const Field& field, const arrow::Field& canonical, const std::string& parent, TextForm form);
  static void BindNode(std::shared_ptr<arrow::Array> array, Node* node);
  arrow::Status AppendFields(const std::vector<Node>& fields, int64_t index, std::string* out);
  arrow::Status AppendColumn(const Node& node, int64_t index, std::string* out);
  arrow::Status AppendValue(const Node& node, int64_t index, std::string* out);

  std::shared_ptr<arrow::Schema> schema_;
  RowShape shape_;
  std::vector<Node> fields_;
  int64_t row_ = 0;
};

}  // namespace headrace::internal
