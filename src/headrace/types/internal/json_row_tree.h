// The tree behind JsonRowReader: one node a column or field with its Arrow builder. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <arrow/builder.h>

#include "headrace/types/coercion.h"
#include "headrace/types/internal/json_walk.h"
#include "headrace/types/internal/scalar_appender.h"
#include "headrace/types/schema.h"

namespace headrace::internal {

class JsonRowTree {
 public:
  static arrow::Result<std::unique_ptr<JsonRowTree>> Make(const arrow::Schema& canonical, const ParseOptions& options,
                                                          arrow::MemoryPool* pool);

  /// After an error the columns may have different lengths.
  arrow::Status Append(std::string_view line, int64_t row);
  arrow::Result<arrow::ArrayVector> Finish();

 private:
  struct Node {
    std::string path;
    std::string name;
    Mode mode = Mode::kNullable;
    arrow::ListBuilder* list = nullptr;         // where repeated
    arrow::StructBuilder* structure = nullptr;  // STRUCT
    std::unique_ptr<ScalarAppender> scalar;     // all others
    std::vector<Node> fields;
    std::unordered_map<std::string, size_t> by_name;  // lower-case ASCII
    uint64_t seen = 0;                                // the object that had this key last
  };

  arrow::Result<Node> Compile(const Field& field, const arrow::DataType& type, const std::string& parent, arrow::ArrayBuilder* builder);
  Node* Find(Node* parent, std::string_view key, size_t expected);

  arrow::Status AppendObject(simdjson::ondemand::object object, Node* node);
  arrow::Status AppendColumn(simdjson::ondemand::value value, Node* node);
  arrow::Status AppendArray(simdjson::ondemand::value value, Node* node);
  arrow::Status AppendValue(simdjson::ondemand::value value, simdjson::ondemand::json_type type, Node* node);
  arrow::Status AppendScalar(simdjson::ondemand::value value, simdjson::ondemand::json_type type, Node* node);
  arrow::Status AppendNull(Node* node);
  arrow::Status AppendMissing(Node* node);
  /// Below a null STRUCT: null, an empty array, or what stands for nothing where null is not allowed.
  arrow::Status AppendBelowNull(Node* node);
  arrow::Status At(const Node& node, const arrow::Status& status) const;

  ParseOptions options_;
  Node root_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders_;
  JsonDocument document_;
  std::string folded_;
  uint64_t objects_ = 0;
  int64_t row_ = 0;
};

}  // namespace headrace::internal
