#include "headrace/files/internal/parquet_format.h"

#include <algorithm>
#include <utility>

#include <arrow/util/thread_pool.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "headrace/base/batch_size.h"
#include "headrace/types/required.h"

namespace headrace {
namespace {

// Batches larger than this are encoded in pieces, so that the memory of a row group is looked at often enough.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

// What the dictionary of one column takes before it holds much, measured with 1,000 INT64 columns: 4 open files take 480 MB less without.
constexpr int64_t kDictionaryBytes = int64_t{128} << 10;

constexpr int64_t kLeastDictionaryBytes = int64_t{16} << 10;
constexpr int64_t kLeastPageBytes = int64_t{64} << 10;

int64_t LeavesOf(const arrow::FieldVector& fields) {
  int64_t leaves = 0;
  for (const auto& field : fields) leaves += field->type()->num_fields() == 0 ? 1 : LeavesOf(field->type()->fields());
  return leaves;
}

std::shared_ptr<parquet::WriterProperties> PropertiesOf(const arrow::Schema& schema, const FileEncoding& encoding,
                                                        arrow::MemoryPool* pool) {
  parquet::WriterProperties::Builder builder;
  const int64_t share = encoding.row_group_memory / std::max<int64_t>(LeavesOf(schema.fields()), 1);
  // They are there from the first row on, so ending the row group earlier does not bound them: of a wide table they would take many times
  // what the writer may hold.
  if (share < kDictionaryBytes) builder.disable_dictionary();
  // A dictionary's hash table takes up to eight times its values, and a page is held until it is full. Were they as large in a wide table
  // as in a narrow one, a row group would be full while all of its columns are still trying dictionaries.
  builder.dictionary_pagesize_limit(std::clamp(share / 16, kLeastDictionaryBytes, parquet::DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT));
  builder.data_pagesize(std::clamp(share / 8, kLeastPageBytes, parquet::kDefaultDataPageSize));
  builder.compression(encoding.codec)->max_row_group_length(encoding.row_group_rows)->memory_pool(pool);
  return builder.build();
}

// The Arrow schema travels in the file, so that Arrow readers get the very types back (JSON and GEOGRAPHY by their extension names).
std::shared_ptr<parquet::ArrowWriterProperties> ArrowPropertiesOf(arrow::internal::Executor* threads) {
  parquet::ArrowWriterProperties::Builder builder;
  builder.store_schema()->enable_compliant_nested_types();
  if (threads != nullptr) builder.set_use_threads(true)->set_executor(threads);
  return builder.build();
}

}  // namespace

arrow::Result<std::unique_ptr<FormatWriter>> ParquetFormatWriter::Make(const FileEncoding& encoding,
                                                                       const std::shared_ptr<arrow::Schema>& schema,
                                                                       const std::shared_ptr<arrow::io::OutputStream>& out) {
  std::unique_ptr<ParquetFormatWriter> made(new ParquetFormatWriter(encoding));
  // Threads of its own: in those that the process shares, a program may wait for this very writer.
  made->columns_ = LeavesOf(schema->fields());
  const int threads = std::min(encoding.column_threads, schema->num_fields());
  if (threads > 1) {
    ARROW_ASSIGN_OR_RAISE(made->threads_, arrow::internal::ThreadPool::Make(threads));
  }
  // Writes the first bytes already.
  ARROW_ASSIGN_OR_RAISE(made->writer_,
                        parquet::arrow::FileWriter::Open(*schema, &made->pool_, out, PropertiesOf(*schema, encoding, &made->pool_),
                                                         ArrowPropertiesOf(made->threads_.get())));
  return made;
}

ParquetFormatWriter::ParquetFormatWriter(const FileEncoding& encoding)
    : encoding_(encoding), piece_bytes_(std::clamp<int64_t>(encoding.row_group_memory / 4, 1, kPieceBytes)) {}

ParquetFormatWriter::~ParquetFormatWriter() = default;

arrow::Status ParquetFormatWriter::WritePiece(const arrow::RecordBatch& piece) {
  if (row_group_full_ || !begun_) {
    ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
    base_memory_ = pool_.bytes_allocated();
    row_group_full_ = false;
    begun_ = true;
  }
  ARROW_RETURN_NOT_OK(writer_->WriteRecordBatch(piece));
  row_group_full_ = pool_.bytes_allocated() - base_memory_ >= encoding_.row_group_memory;
  return arrow::Status::OK();
}

arrow::Status ParquetFormatWriter::Write(const arrow::RecordBatch& batch) {
  const int64_t bytes = ReferencedBytes(batch);
  if (threads_ == nullptr) return WriteInPieces(batch, bytes);
  if (bytes >= piece_bytes_) {
    ARROW_RETURN_NOT_OK(WriteWaiting());
    return WriteInPieces(batch, bytes);
  }
  // A column's dictionary moves into the cache of whichever thread encodes it: rarely, when many rows come with it.
  waiting_.push_back(batch.Slice(0));
  waiting_bytes_ += bytes + kBatchObjectBytes + columns_ * kColumnObjectBytes;
  return waiting_bytes_ < piece_bytes_ ? arrow::Status::OK() : WriteWaiting();
}

arrow::Status ParquetFormatWriter::WriteWaiting() {
  if (waiting_.empty()) return arrow::Status::OK();
  std::shared_ptr<arrow::RecordBatch> batch = waiting_.front();
  if (waiting_.size() > 1) {
    ARROW_ASSIGN_OR_RAISE(batch, arrow::ConcatenateRecordBatches(waiting_));
  }
  waiting_.clear();
  return WriteInPieces(*batch, std::exchange(waiting_bytes_, 0));
}

arrow::Status ParquetFormatWriter::WriteInPieces(const arrow::RecordBatch& batch, int64_t bytes) {
  const int64_t pieces = std::clamp<int64_t>((bytes + piece_bytes_ / 2) / piece_bytes_, 1, std::max<int64_t>(batch.num_rows(), 1));
  const int64_t rows = (batch.num_rows() + pieces - 1) / pieces;
  for (int64_t first = 0; first < batch.num_rows(); first += rows) {
    // Arrow's writer refuses null marks on fields that are not nullable, which Arrow's readers make below a null STRUCT.
    ARROW_ASSIGN_OR_RAISE(const auto piece, DropNullsBelowNull(batch.Slice(first, rows), rows_ + first));
    ARROW_RETURN_NOT_OK(WritePiece(*piece));
  }
  rows_ += batch.num_rows();
  return arrow::Status::OK();
}

arrow::Status ParquetFormatWriter::Finish() {
  ARROW_RETURN_NOT_OK(WriteWaiting());
  ARROW_RETURN_NOT_OK(writer_->Close());
  writer_.reset();
  return arrow::Status::OK();
}

}  // namespace headrace
