// Avro schemas, parsed: a graph of nodes that decoder, encoder and the mapping to BigQuery's types walk.
//
// A Schema is immutable, owns its nodes and may be shared by threads. The text is untrusted: its size, nesting and number of names are
// limited before anything is built of it. A record may contain itself (the graph then has a cycle): who walks the graph refuses such a
// record by name, unless it does not read the field. Rules: https://avro.apache.org/docs/1.12.0/specification/
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"

namespace headrace::avro {

enum class Kind { kNull, kBoolean, kInt, kLong, kFloat, kDouble, kBytes, kString, kRecord, kEnum, kFixed, kArray, kMap, kUnion };
/// "boolean" for kBoolean.
std::string_view KindName(Kind kind);

/// Logical types that change what a value means. An unknown one, or one that does not fit its type, is ignored, as the specification asks.
enum class Logical {
  kNone,
  kDecimal,
  kBigDecimal,
  kUuid,
  kDate,
  kTimeMillis,
  kTimeMicros,
  kTimestampMillis,
  kTimestampMicros,
  kTimestampNanos,
  kLocalTimestampMillis,
  kLocalTimestampMicros,
  kLocalTimestampNanos,
  kDuration,
  kDatetime,  // BigQuery's own: a DATETIME as text
};
/// "timestamp-micros" for kTimestampMicros; empty for kNone.
std::string_view LogicalName(Logical logical);

struct Node;

struct RecordField {
  std::string name{};
  std::string display_name{};  // attribute displayName: the column's real name where Avro's grammar cannot hold it
  std::vector<std::string> aliases{};
  std::string doc{};
  std::string default_json{};  // as JSON text; empty = none
  const Node* type = nullptr;

  /// The name of the column that the field holds.
  const std::string& column_name() const { return display_name.empty() ? name : display_name; }
};

struct Node {
  Kind kind = Kind::kNull;
  Logical logical = Logical::kNone;
  int precision = 0;  // decimal
  int scale = 0;
  std::string sql_type{};   // BigQuery's attribute sqlType: "JSON", "GEOGRAPHY", "DATETIME", "INTERVAL" ...
  std::string full_name{};  // record, enum, fixed: with its namespace
  std::vector<std::string> aliases{};
  std::string doc{};
  std::vector<RecordField> fields{};    // record
  std::vector<std::string> symbols{};   // enum
  std::string symbol_default{};         // enum
  int64_t size = 0;                     // fixed
  std::vector<const Node*> branches{};  // union: in order; array and map: the one type of elements or values
  int64_t min_bytes = 0;                // no value is encoded in fewer bytes
  bool always_empty = false;            // every value is encoded in no byte at all: null, fixed(0), a record of such

  const Node& element() const { return *branches.front(); }
};

class Schema {
 public:
  /// Bytes of the text. The service's own limit is far below: 10,000 columns of names of 300 characters.
  static constexpr int64_t kMaxTextBytes = int64_t{16} << 20;
  /// Types inside each other. BigQuery's deepest column, 15 structs in arrays in unions, needs 46.
  static constexpr int kMaxDepth = 64;
  /// Fields, named types and symbols together.
  static constexpr int64_t kMaxNames = 100'000;

  /// INVALID_ARGUMENT names what is wrong and where.
  static arrow::Result<std::shared_ptr<const Schema>> Parse(std::string_view text);

  const Node& root() const { return *root_; }
  /// The schema as text again: what this class keeps of it, attributes of others left out.
  std::string ToJson() const;

  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

 private:
  friend class SchemaParser;
  Schema() = default;

  std::vector<std::unique_ptr<Node>> nodes_;
  const Node* root_ = nullptr;
};

/// A union of null and one other type, or of one type only, taken apart; any other type is its own value.
struct Optional {
  const Node* value = nullptr;  // null: the type is a union of several types other than null, or holds only null
  int null_branch = -1;         // the index of null in the union; -1: never null
  int value_branch = -1;        // -1: not a union
};
Optional SplitOptional(const Node& node);

}  // namespace headrace::avro
