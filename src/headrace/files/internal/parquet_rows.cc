#include "headrace/files/internal/parquet_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "headrace/files/internal/parquet_int96.h"
#include "headrace/types/schema.h"

namespace headrace {
namespace {

arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> OpenParquet(const FileAccess& access, const FileIdentity& identity) {
  ARROW_ASSIGN_OR_RAISE(auto file, access.OpenFile(identity));
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.enable_buffered_stream();  // else the whole column chunks of a row group are in memory at once
  parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
  arrow_properties.set_batch_size(access.options->max_rows_per_batch);
  arrow_properties.set_pre_buffer(false);  // readers of splits are threads already
  // Nanoseconds, Arrow's default, are right from 1677 to 2262 alone; CheckInt96 sees to what microseconds do not hold.
  arrow_properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(file, properties));
  return builder.memory_pool(arrow::default_memory_pool())->properties(arrow_properties)->Build();
}

void CollectLeaves(const parquet::arrow::SchemaField& field, std::vector<int>* leaves) {
  if (field.column_index >= 0) leaves->push_back(field.column_index);
  for (const auto& child : field.children) CollectLeaves(child, leaves);
}

/// The leaf columns of the top-level fields that `schema` has.
std::vector<int> LeavesOf(const parquet::arrow::FileReader& reader, const arrow::Schema& schema) {
  std::vector<int> leaves;
  for (const auto& field : reader.manifest().schema_fields) {
    const bool wanted = std::any_of(schema.fields().begin(), schema.fields().end(),
                                    [&](const auto& selected) { return SameColumnName(selected->name(), field.field->name()); });
    if (wanted) CollectLeaves(field, &leaves);
  }
  return leaves;
}

/// Row groups one after the other, put together until a part has split_bytes.
std::vector<FilePart> PartsOf(const parquet::FileMetaData& metadata, const FileIdentity& file, int64_t split_bytes) {
  std::vector<FilePart> parts;
  FilePart part{.file = file, .first_row = 0, .rows = 0};
  for (int i = 0; i < metadata.num_row_groups(); ++i) {
    const auto group = metadata.RowGroup(i);
    const int64_t bytes = std::max<int64_t>(group->total_compressed_size(), 0);
    if (part.rows > 0 && part.bytes + bytes > split_bytes) {
      parts.push_back(part);
      part = {.file = file, .begin = i, .end = i, .first_row = part.first_row + part.rows, .rows = 0};
    }
    part.end = i + 1;
    part.rows += group->num_rows();
    part.bytes += bytes;
  }
  if (part.rows > 0) parts.push_back(part);
  return parts;
}

arrow::Result<FoundFile> Look(const FileAccess& access, const FileIdentity& file) {
  ARROW_ASSIGN_OR_RAISE(auto reader, OpenParquet(access, file));
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  FoundFile found;
  ARROW_ASSIGN_OR_RAISE(found.schema, CanonicalFileSchema(schema, file.path));
  found.parts = PartsOf(*reader->parquet_reader()->metadata(), file, access.options->split_bytes.value_or(kDefaultSplitBytes));
  return found;
}

}  // namespace

ParquetRows::ParquetRows(const FilePart& part, std::shared_ptr<arrow::Schema> schema)
    : path_(part.file.path), schema_(std::move(schema)), next_row_(std::max<int64_t>(part.first_row, 0)) {}
ParquetRows::~ParquetRows() = default;

arrow::Result<std::unique_ptr<RowStream>> ParquetRows::Open(const FileAccess& access, const FilePart& part,
                                                            std::shared_ptr<arrow::Schema> schema) {
  std::unique_ptr<ParquetRows> rows(new ParquetRows(part, std::move(schema)));
  auto open = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(rows->file_, OpenParquet(access, part.file));
    if (part.begin < 0 || part.end > rows->file_->num_row_groups() || part.begin > part.end) {
      return arrow::Status::Invalid("it has ", rows->file_->num_row_groups(), " row groups, the plan says ", part.begin, " to ", part.end);
    }
    std::vector<int> groups(static_cast<size_t>(part.end - part.begin));
    std::iota(groups.begin(), groups.end(), static_cast<int>(part.begin));
    const auto leaves = LeavesOf(*rows->file_, *rows->schema_);
    ARROW_RETURN_NOT_OK(CheckInt96(rows->file_->parquet_reader(), groups, leaves, rows->next_row_));
    return rows->file_->GetRecordBatchReader(groups, leaves).Value(&rows->rows_);
  };
  ARROW_RETURN_NOT_OK(ExplainFileError(open(), part.file.path));
  return rows;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ParquetRows::Next() {
  std::shared_ptr<arrow::RecordBatch> batch;
  do {
    ARROW_RETURN_NOT_OK(ExplainFileError(rows_->ReadNext(&batch), path_));
    if (batch == nullptr) return batch;
  } while (batch->num_rows() == 0);
  const int64_t first_row = std::exchange(next_row_, next_row_ + batch->num_rows());
  return ToResultColumns(batch, schema_, path_, first_row);
}

arrow::Result<FoundFile> LookAtParquet(const FileAccess& access, const FileIdentity& file) {
  auto found = Look(access, file);
  ARROW_RETURN_NOT_OK(ExplainFileError(found.status(), file.path));
  return found;
}

}  // namespace headrace
