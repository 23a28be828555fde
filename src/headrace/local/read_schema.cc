#include "headrace/local/read_schema.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <arrow/array/array_binary.h>
#include <arrow/array/builder_time.h>
#include <arrow/array/data.h>
#include <arrow/array/util.h>
#include <fmt/format.h>

#include "headrace/types/value_text.h"

namespace headrace::local {
namespace {

constexpr int64_t kPicosPerMicro = 1'000'000;
constexpr int64_t kPicosPerNano = 1'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Some of the fields, in their order. `paths` are what is left of the names below `parent`.
class Selection {
 public:
  std::vector<Field> Of(const std::vector<Field>& fields, const std::vector<std::string_view>& paths, const std::string& parent) {
    // For each field the paths below it; an empty path stands for all of it.
    std::vector<std::vector<std::string_view>> below(fields.size());
    for (std::string_view path : paths) {
      size_t dot = path.find('.');
      auto whole = FindField(fields, path);
      auto found = whole ? whole : FindField(fields, path.substr(0, dot));
      if (!found || (!whole && (dot == std::string_view::npos || fields[*found].kind != TypeKind::kStruct))) {
        unknown_ += fmt::format("{}{}{}", unknown_.empty() ? "" : ", ", parent, path);
        continue;
      }
      below[*found].push_back(whole ? std::string_view() : path.substr(dot + 1));
    }
    std::vector<Field> selected;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (below[i].empty()) continue;
      Field field = fields[i];
      bool whole = std::any_of(below[i].begin(), below[i].end(), [](std::string_view path) { return path.empty(); });
      std::erase_if(below[i], [](std::string_view path) { return path.empty(); });
      // Names below a whole field must be right all the same.
      auto inner = Of(field.fields, below[i], parent + field.name + ".");
      if (!whole) field.fields = std::move(inner);
      selected.push_back(std::move(field));
    }
    return selected;
  }

  const std::string& unknown() const { return unknown_; }

 private:
  std::string unknown_;
};

// Rewrites the parts of an array whose type in `to` is a time where it is text.
class Cutter {
 public:
  arrow::Result<std::shared_ptr<arrow::ArrayData>> Cut(const std::shared_ptr<arrow::ArrayData>& from, const arrow::Field& to,
                                                       const std::string& parent) {
    std::string path = parent + to.name();
    if (from->type->id() == arrow::Type::STRING && to.type()->id() == arrow::Type::TIMESTAMP) return Times(from, to.type(), path);
    auto copy = from->Copy();
    copy->type = to.type();
    if (to.type()->id() == arrow::Type::STRUCT) {
      for (size_t i = 0; i < copy->child_data.size(); ++i) {
        ARROW_ASSIGN_OR_RAISE(copy->child_data[i], Cut(from->child_data[i], *to.type()->field(static_cast<int>(i)), path + "."));
      }
    } else if (to.type()->id() == arrow::Type::LIST) {
      auto element = to.type()->field(0)->WithName("");
      ARROW_ASSIGN_OR_RAISE(copy->child_data[0], Cut(from->child_data[0], *element, path));
    }
    return copy;
  }

 private:
  static arrow::Result<std::shared_ptr<arrow::ArrayData>> Times(const std::shared_ptr<arrow::ArrayData>& from,
                                                                const std::shared_ptr<arrow::DataType>& type, const std::string& path) {
    arrow::StringArray texts(from);
    bool nanos = static_cast<const arrow::TimestampType&>(*type).unit() == arrow::TimeUnit::NANO;
    arrow::TimestampBuilder builder(type, arrow::default_memory_pool());
    ARROW_RETURN_NOT_OK(builder.Reserve(texts.length()));
    for (int64_t i = 0; i < texts.length(); ++i) {
      if (texts.IsNull(i)) {
        builder.UnsafeAppendNull();
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(PicosTimestamp value, ParsePicosTimestamp(texts.GetView(i)));
      if (!nanos) {
        builder.UnsafeAppend(value.seconds * kMicrosPerSecond + value.picoseconds / kPicosPerMicro);
        continue;
      }
      int64_t cut = 0;
      if (__builtin_mul_overflow(value.seconds, kNanosPerSecond, &cut) ||
          __builtin_add_overflow(cut, value.picoseconds / kPicosPerNano, &cut)) {
        return MakeError(
            {.code = Code::kOutOfRange, .row = i, .column = path},
            fmt::format("request failed: column {}, row {}: {} is outside the range of nanoseconds in 64 bits", path, i, texts.GetView(i)));
      }
      builder.UnsafeAppend(cut);
    }
    ARROW_ASSIGN_OR_RAISE(auto cut, builder.Finish());
    return cut->data();
  }
};

}  // namespace

arrow::Result<TableSchema> SelectFields(const TableSchema& schema, const std::vector<std::string>& selected) {
  if (selected.empty()) return schema;
  Selection selection;
  TableSchema kept;
  kept.fields = selection.Of(schema.fields, {selected.begin(), selected.end()}, "");
  if (selection.unknown().empty()) return kept;
  return MakeError({.code = Code::kInvalidArgument, .resource = "selected_fields", .reason = "INVALID_FIELDS"},
                   fmt::format("request failed: The following selected fields do not exist in the table schema: {}", selection.unknown()));
}

arrow::Result<RowBatches> CutPicos(const RowBatches& rows, const TableSchema& schema, TimestampPrecision precision) {
  ARROW_ASSIGN_OR_RAISE(auto wanted, ToArrowSchema(schema, precision));
  if (precision == TimestampPrecision::kPicos || wanted->Equals(*rows.schema, /*check_metadata=*/false)) return rows;
  std::vector<std::shared_ptr<arrow::RecordBatch>> cut;
  for (const auto& batch : rows.batches) {
    std::vector<std::shared_ptr<arrow::ArrayData>> columns;
    for (int i = 0; i < batch->num_columns(); ++i) {
      ARROW_ASSIGN_OR_RAISE(columns.emplace_back(), Cutter().Cut(batch->column_data(i), *wanted->field(i), ""));
    }
    cut.push_back(arrow::RecordBatch::Make(wanted, batch->num_rows(), std::move(columns)));
  }
  return RowBatches::Make(wanted, std::move(cut));
}

}  // namespace headrace::local
