#include "headrace/avro/encoder.h"

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/util/decimal.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/avro/internal/append_long.h"
#include "headrace/avro/internal/folded_name.h"
#include "headrace/types/type_table.h"
#include "headrace/types/value_text.h"

namespace headrace::avro {
namespace {

enum class Write : uint8_t {
  kNothing,  // null
  kBool,
  kInt32,
  kInt64,
  kInt64AsInt,
  kInt64Times,
  kDouble,
  kBytes,
  kFixed,
  kDecimal128,
  kDecimal256,
  kDateText,
  kDatetimeText,
  kRecord,
  kArray,
};

struct Step {
  Write write = Write::kNothing;
  bool is_union = false;
  bool null_as_empty = false;  // a null array is an empty one
  int8_t null_branch = -1;
  int8_t value_branch = 0;
  int64_t factor = 1;  // kInt64Times; kFixed and a decimal in a fixed: bytes, else 0
  arrow::BasicDecimal256 limit{};
  bool check_precision = false;
  std::string path{};
  std::vector<Step> inside{};  // record: in the schema's order; array: one
  std::vector<int> child{};    // record: which child of the struct each field takes
};

arrow::Status Refuse(const std::string& path, std::string_view why) {
  ErrorInfo info{.code = Code::kUnimplemented, .resource = "Avro", .reason = "UNSUPPORTED", .column = path};
  return MakeError(std::move(info), fmt::format("column {}: {}", path, why));
}

class StepCompiler {
 public:
  static arrow::Status Record(const Node& record, const arrow::FieldVector& columns, const std::string& path, int depth, Step* step) {
    if (depth > Schema::kMaxDepth) return Refuse(path, fmt::format("more than {} types inside each other", Schema::kMaxDepth));
    step->write = Write::kRecord;
    step->path = path;
    std::unordered_multimap<std::string, size_t> by_name;
    for (size_t i = 0; i < columns.size(); ++i) by_name.emplace(FoldedName(columns[i]->name()), i);
    std::vector<bool> used(columns.size(), false);
    for (const RecordField& field : record.fields) {
      const std::string where = path.empty() ? field.column_name() : path + "." + field.column_name();
      std::optional<size_t> found;
      auto [first, last] = by_name.equal_range(FoldedName(field.column_name()));
      for (auto it = first; it != last; ++it) {
        if (used[it->second]) continue;
        if (!found || columns[it->second]->name() == field.column_name()) found = it->second;
      }
      if (!found) return Refuse(where, "the rows have no column for this field of the Avro schema");
      used[*found] = true;
      Step inside;
      ARROW_RETURN_NOT_OK(Value(*field.type, *columns[*found], where, depth, &inside));
      step->inside.push_back(std::move(inside));
      step->child.push_back(static_cast<int>(*found));
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (used[i]) continue;
      return Refuse(path.empty() ? columns[i]->name() : path + "." + columns[i]->name(), "the Avro schema has no field for this column");
    }
    return arrow::Status::OK();
  }

 private:
  static arrow::Status NoFit(const Node& node, const arrow::DataType& type, const std::string& path) {
    std::string avro(KindName(node.kind));
    if (node.logical != Logical::kNone) avro += fmt::format(" ({})", LogicalName(node.logical));
    return Refuse(path, fmt::format("{} cannot be written as Avro's {}", type.ToString(), avro));
  }

  static arrow::Status Value(const Node& declared, const arrow::Field& column, const std::string& path, int depth, Step* step) {
    const Optional split = SplitOptional(declared);
    if (split.value == nullptr) return Refuse(path, "a union of several types, or null alone, is not written");
    const Node& node = *split.value;
    const arrow::DataType& type = *column.type();
    step->path = path;
    step->is_union = split.value_branch >= 0;
    step->null_branch = static_cast<int8_t>(split.null_branch);
    step->value_branch = static_cast<int8_t>(split.value_branch);
    if (type.id() == arrow::Type::STRUCT) {
      if (node.kind != Kind::kRecord) return NoFit(node, type, path);
      return Record(node, type.fields(), path, depth + 1, step);
    }
    if (type.id() == arrow::Type::LIST) {
      if (node.kind != Kind::kArray) return NoFit(node, type, path);
      if (depth > Schema::kMaxDepth) return Refuse(path, fmt::format("more than {} types inside each other", Schema::kMaxDepth));
      step->write = Write::kArray;
      step->null_as_empty = true;
      step->inside.emplace_back();
      return Value(node.element(), *type.field(0), path, depth + 1, &step->inside.back());
    }
    return Leaf(node, column, step) ? arrow::Status::OK() : NoFit(node, type, path);
  }

  static bool Leaf(const Node& node, const arrow::Field& column, Step* step) {
    const arrow::DataType& type = *column.type();
    switch (type.id()) {
      case arrow::Type::BOOL:
        step->write = Write::kBool;
        return node.kind == Kind::kBoolean;
      case arrow::Type::INT32:
        step->write = Write::kInt32;
        return (node.kind == Kind::kInt || node.kind == Kind::kLong) && node.logical == Logical::kNone;
      case arrow::Type::INT64:
        step->write = node.kind == Kind::kInt ? Write::kInt64AsInt : Write::kInt64;
        return (node.kind == Kind::kInt || node.kind == Kind::kLong) && node.logical == Logical::kNone;
      case arrow::Type::DOUBLE:
        step->write = Write::kDouble;
        return node.kind == Kind::kDouble;
      case arrow::Type::STRING:
        step->write = Write::kBytes;
        return node.kind == Kind::kString && node.logical != Logical::kDatetime;
      case arrow::Type::BINARY:
        step->write = node.kind == Kind::kFixed ? Write::kFixed : Write::kBytes;
        step->factor = node.size;
        return (node.kind == Kind::kBytes || node.kind == Kind::kFixed) && node.logical == Logical::kNone;
      case arrow::Type::DATE32:
        step->write = node.kind == Kind::kString ? Write::kDateText : Write::kInt32;
        return node.logical == Logical::kDate || (node.kind == Kind::kString && node.sql_type == "DATE");
      case arrow::Type::TIME64:
        step->write = Write::kInt64;
        return node.logical == Logical::kTimeMicros && static_cast<const arrow::Time64Type&>(type).unit() == arrow::TimeUnit::MICRO;
      case arrow::Type::TIMESTAMP:
        return Timestamp(node, static_cast<const arrow::TimestampType&>(type), step);
      case arrow::Type::DECIMAL128:
      case arrow::Type::DECIMAL256:
        return Decimal(node, static_cast<const arrow::DecimalType&>(type), step);
      default:
        return false;
    }
  }

  static bool Timestamp(const Node& node, const arrow::TimestampType& type, Step* step) {
    const bool civil = type.timezone().empty();
    const bool micros = type.unit() == arrow::TimeUnit::MICRO;
    const bool nanos = type.unit() == arrow::TimeUnit::NANO;
    step->write = Write::kInt64;
    if (node.logical == Logical::kTimestampMicros) return !civil && micros;
    if (node.logical == Logical::kLocalTimestampMicros) return civil && micros;
    if (node.logical == Logical::kTimestampNanos && !civil) {
      if (micros) {
        step->write = Write::kInt64Times;
        step->factor = 1'000;
      }
      return micros || nanos;
    }
    step->write = Write::kDatetimeText;
    return civil && micros && (node.logical == Logical::kDatetime || (node.kind == Kind::kString && node.sql_type == "DATETIME"));
  }

  static bool Decimal(const Node& node, const arrow::DecimalType& type, Step* step) {
    if (node.logical != Logical::kDecimal || node.scale != type.scale()) return false;
    step->write = type.id() == arrow::Type::DECIMAL128 ? Write::kDecimal128 : Write::kDecimal256;
    step->factor = node.size;
    // As in the decoder: 76 digits and more stand for BIGNUMERIC's own range, all of the 256 bits.
    step->check_precision = node.precision < 76;
    if (step->check_precision) step->limit = arrow::BasicDecimal256::GetMaxValue(node.precision);
    return true;
  }
};

// The arrays of one batch, as the steps take them: a step and its array have the same place in their trees.
struct Bound {
  const arrow::Array* array = nullptr;
  std::shared_ptr<arrow::Array> owner{};
  const uint8_t* values = nullptr;  // numbers, decimals: of the first value
  std::vector<Bound> inside{};
};

int WidthOf(Write write) {
  switch (write) {
    case Write::kInt32:
    case Write::kDateText:
      return 4;
    case Write::kDecimal128:
      return 16;
    case Write::kDecimal256:
      return 32;
    default:
      return 8;
  }
}

bool IsFixedWidth(Write write) {
  return write != Write::kNothing && write != Write::kBool && write != Write::kBytes && write != Write::kFixed && write != Write::kRecord &&
         write != Write::kArray;
}

void BindArray(const Step& step, std::shared_ptr<arrow::Array> array, Bound* bound) {
  bound->array = array.get();
  if (step.write == Write::kRecord) {
    const auto& record = static_cast<const arrow::StructArray&>(*array);
    for (size_t i = 0; i < step.inside.size(); ++i) {
      bound->inside.emplace_back();
      BindArray(step.inside[i], record.field(step.child[i]), &bound->inside.back());
    }
  } else if (step.write == Write::kArray) {
    bound->inside.emplace_back();
    BindArray(step.inside[0], static_cast<const arrow::ListArray&>(*array).values(), &bound->inside.back());
  } else if (IsFixedWidth(step.write)) {
    const auto& buffer = array->data()->buffers[1];
    bound->values = buffer == nullptr ? nullptr : buffer->data() + array->offset() * WidthOf(step.write);
  }
  bound->owner = std::move(array);
}

template <typename T>
T Load(const Bound& bound, int64_t index) {
  T value;
  std::memcpy(&value, bound.values + index * static_cast<int64_t>(sizeof(T)), sizeof value);
  return value;
}

class RowWriter {
 public:
  explicit RowWriter(std::string* out) : out_(out) {}

  /// False after a failure, which status() tells.
  bool Value(const Step& step, const Bound& bound, int64_t index) {
    if (bound.array->IsNull(index)) {
      if (step.null_as_empty) {
        if (step.is_union) AppendLong(step.value_branch, out_);
        AppendLong(0, out_);
        return true;
      }
      if (step.null_branch < 0) return Fail(step, "NULL_IN_REQUIRED", "null, but the Avro schema has no null there");
      AppendLong(step.null_branch, out_);
      return true;
    }
    if (step.is_union) AppendLong(step.value_branch, out_);
    switch (step.write) {
      case Write::kNothing:
        return true;
      case Write::kBool:
        out_->push_back(static_cast<const arrow::BooleanArray&>(*bound.array).Value(index) ? '\1' : '\0');
        return true;
      case Write::kInt32:
        AppendLong(Load<int32_t>(bound, index), out_);
        return true;
      case Write::kInt64:
        AppendLong(Load<int64_t>(bound, index), out_);
        return true;
      case Write::kInt64AsInt: {
        const auto value = Load<int64_t>(bound, index);
        if (value != static_cast<int32_t>(value)) return Fail(step, "VALUE_OUT_OF_RANGE", fmt::format("{} is no 32-bit integer", value));
        AppendLong(value, out_);
        return true;
      }
      case Write::kInt64Times: {
        int64_t value = Load<int64_t>(bound, index);
        if (__builtin_mul_overflow(value, step.factor, &value)) return Fail(step, "VALUE_OUT_OF_RANGE", "outside the range of nanoseconds");
        AppendLong(value, out_);
        return true;
      }
      case Write::kDouble:
        out_->append(reinterpret_cast<const char*>(bound.values) + index * static_cast<int64_t>(sizeof(double)), sizeof(double));
        return true;
      case Write::kBytes:
        AppendSized(static_cast<const arrow::BinaryArray&>(*bound.array).GetView(index), out_);
        return true;
      case Write::kFixed: {
        const auto bytes = static_cast<const arrow::BinaryArray&>(*bound.array).GetView(index);
        if (static_cast<int64_t>(bytes.size()) != step.factor) {
          return Fail(step, "VALUE_OUT_OF_RANGE", fmt::format("{} bytes, not the {} of the fixed type", bytes.size(), step.factor));
        }
        out_->append(bytes);
        return true;
      }
      case Write::kDecimal128:
      case Write::kDecimal256:
        return Decimal(step, bound, index);
      case Write::kDateText:
      case Write::kDatetimeText:
        return Civil(step, bound, index);
      case Write::kRecord:
        for (size_t i = 0; i < step.inside.size(); ++i) {
          if (!Value(step.inside[i], bound.inside[i], index)) return false;
        }
        return true;
      case Write::kArray: {
        const auto& list = static_cast<const arrow::ListArray&>(*bound.array);
        const int64_t first = list.value_offset(index);
        const int64_t last = list.value_offset(index + 1);
        if (first < last) AppendLong(last - first, out_);
        for (int64_t i = first; i < last; ++i) {
          if (!Value(step.inside[0], bound.inside[0], i)) return false;
        }
        AppendLong(0, out_);
        return true;
      }
    }
    return true;
  }

  const arrow::Status& status() const { return status_; }
  void SetRow(int64_t row) { row_ = row; }

 private:
  // The fewest bytes of two's complement, most significant first.
  bool Decimal(const Step& step, const Bound& bound, int64_t index) {
    const bool wide = step.write == Write::kDecimal256;
    const size_t width = wide ? 32 : 16;
    const uint8_t* little = bound.values + index * static_cast<int64_t>(width);
    const uint8_t sign = little[width - 1] >= 0x80 ? 0xFF : 0;
    if (step.check_precision) {
      std::array<uint64_t, 4> words{};
      words.fill(sign == 0 ? 0 : ~uint64_t{0});
      std::memcpy(words.data(), little, width);
      const arrow::BasicDecimal256 value(arrow::BasicDecimal256::LittleEndianArray, words);
      if (value > step.limit || value < -step.limit)
        return Fail(step, "VALUE_OUT_OF_RANGE", "the decimal has more digits than the Avro schema's");
    }
    size_t size = width;
    while (size > 1 && little[size - 1] == sign && ((little[size - 2] ^ sign) & 0x80) == 0) --size;
    std::array<char, 32> big{};
    for (size_t i = 0; i < size; ++i) big[i] = static_cast<char>(little[size - 1 - i]);
    if (step.factor == 0) {
      AppendSized({big.data(), size}, out_);
      return true;
    }
    const auto fixed = static_cast<size_t>(step.factor);
    if (size > fixed) return Fail(step, "VALUE_OUT_OF_RANGE", fmt::format("the decimal does not fit {} bytes", fixed));
    out_->append(fixed - size, static_cast<char>(sign));
    out_->append(big.data(), size);
    return true;
  }

  bool Civil(const Step& step, const Bound& bound, int64_t index) {
    text_.clear();
    if (step.write == Write::kDateText) {
      const auto days = Load<int32_t>(bound, index);
      if (days < kMinDate || days > kMaxDate)
        return Fail(step, "VALUE_OUT_OF_RANGE", fmt::format("{} days are outside 0001-01-01 to 9999-12-31", days));
      AppendDate(days, &text_);
    } else {
      const auto micros = Load<int64_t>(bound, index);
      if (micros < kMinTimestamp || micros > kMaxTimestamp) {
        return Fail(step, "VALUE_OUT_OF_RANGE", fmt::format("{} microseconds are outside 0001-01-01 to 9999-12-31", micros));
      }
      AppendDatetime(micros, &text_);
    }
    AppendSized(text_, out_);
    return true;
  }

  bool Fail(const Step& step, std::string_view reason, std::string_view why) {
    ErrorInfo info{.code = Code::kInvalidArgument, .reason = std::string(reason), .row = row_, .column = step.path};
    status_ = MakeError(std::move(info), fmt::format("column {}, row {}: {}", step.path, row_, why));
    return false;
  }

  std::string* out_;
  std::string text_;
  int64_t row_ = 0;
  arrow::Status status_;
};

}  // namespace

class Encoder::Impl {
 public:
  Impl(std::shared_ptr<const Schema> schema, std::shared_ptr<arrow::Schema> columns, Step root)
      : schema_(std::move(schema)), columns_(std::move(columns)), root_(std::move(root)) {}

  arrow::Result<int64_t> Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, int64_t max_bytes, std::string* out) const {
    if (!batch.schema()->Equals(*columns_, false)) {
      return arrow::Status::Invalid(
          fmt::format("the batch has other columns than the encoder: {} instead of {}", batch.schema()->ToString(), columns_->ToString()));
    }
    if (first < 0 || count < 0 || count > batch.num_rows() - first) {
      return arrow::Status::Invalid(fmt::format("rows {} to {} of a batch of {}", first, first + count, batch.num_rows()));
    }
    std::vector<Bound> bound(root_.inside.size());
    for (size_t i = 0; i < bound.size(); ++i) BindArray(root_.inside[i], batch.column(root_.child[i]), &bound[i]);
    const size_t before = out->size();
    RowWriter writer(out);
    for (int64_t row = first; row < first + count; ++row) {
      writer.SetRow(row);
      const size_t row_start = out->size();
      for (size_t i = 0; i < bound.size(); ++i) {
        if (writer.Value(root_.inside[i], bound[i], row)) continue;
        out->resize(before);
        return writer.status();
      }
      if (row > first && static_cast<int64_t>(out->size()) > max_bytes) {
        out->resize(row_start);
        return row - first;
      }
    }
    return count;
  }

 private:
  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<arrow::Schema> columns_;
  Step root_;
};

Encoder::Encoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Encoder::~Encoder() = default;

arrow::Result<std::unique_ptr<Encoder>> Encoder::Make(std::shared_ptr<const Schema> schema, std::shared_ptr<arrow::Schema> columns) {
  if (schema->root().kind != Kind::kRecord) {
    return Unsupported("Avro", fmt::format("Avro schema: rows are records, not {}", KindName(schema->root().kind)));
  }
  Step root;
  ARROW_RETURN_NOT_OK(StepCompiler::Record(schema->root(), columns->fields(), "", 1, &root));
  return std::unique_ptr<Encoder>(new Encoder(std::make_unique<Impl>(std::move(schema), std::move(columns), std::move(root))));
}

arrow::Status Encoder::Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out) {
  return impl_->Append(batch, first, count, std::numeric_limits<int64_t>::max(), out).status();
}

arrow::Result<int64_t> Encoder::AppendUpTo(const arrow::RecordBatch& batch, int64_t first, int64_t count, int64_t max_bytes,
                                           std::string* out) {
  return impl_->Append(batch, first, count, max_bytes, out);
}

}  // namespace headrace::avro
