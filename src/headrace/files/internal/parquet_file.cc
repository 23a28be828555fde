#include "headrace/files/internal/parquet_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include <arrow/util/byte_size.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "headrace/base/fail_point.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

// Batches larger than this are encoded in pieces, so that the memory of a row group is looked at often enough.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

constexpr std::array<std::pair<std::string_view, arrow::Compression::type>, 5> kCompressions = {{
    {"zstd", arrow::Compression::ZSTD},
    {"snappy", arrow::Compression::SNAPPY},
    {"gzip", arrow::Compression::GZIP},
    {"lz4", arrow::Compression::LZ4},  // LZ4_RAW in the file
    {"none", arrow::Compression::UNCOMPRESSED},
}};

// What the dictionary of one column takes before it holds much, measured with 1,000 INT64 columns: 4 open files take 480 MB less without.
constexpr int64_t kDictionaryBytes = int64_t{128} << 10;

int64_t LeavesOf(const arrow::FieldVector& fields) {
  int64_t leaves = 0;
  for (const auto& field : fields) leaves += field->type()->num_fields() == 0 ? 1 : LeavesOf(field->type()->fields());
  return leaves;
}

std::shared_ptr<parquet::WriterProperties> PropertiesOf(const arrow::Schema& schema, const ParquetEncoding& encoding,
                                                        arrow::MemoryPool* pool) {
  parquet::WriterProperties::Builder builder;
  // They are there from the first row on, so ending the row group earlier does not bound them: of a wide table they would take many times
  // what the writer may hold.
  if (LeavesOf(schema.fields()) > encoding.row_group_memory / kDictionaryBytes) builder.disable_dictionary();
  builder.compression(encoding.compression)->max_row_group_length(encoding.row_group_rows)->memory_pool(pool);
  return builder.build();
}

// The Arrow schema travels in the file, so that Arrow readers get the very types back (JSON and GEOGRAPHY by their extension names).
std::shared_ptr<parquet::ArrowWriterProperties> ArrowPropertiesOf() {
  parquet::ArrowWriterProperties::Builder builder;
  return builder.store_schema()->enable_compliant_nested_types()->build();
}

}  // namespace

arrow::Result<arrow::Compression::type> CompressionFromName(const std::string& name) {
  for (const auto& [known, type] : kCompressions) {
    if (known == name) return type;
  }
  return InvalidOption("compression", fmt::format("compression '{}' is not known: zstd, snappy, gzip, lz4 and none are", name));
}

arrow::Status CheckParquetSchema(const arrow::Schema& schema) {
  if (schema.num_fields() == 0) {
    return Unsupported("Parquet", "a Parquet file cannot hold rows without columns: select at least one column");
  }
  return FromArrowSchema(schema).status();
}

arrow::Result<std::unique_ptr<ParquetFile>> ParquetFile::Create(FileSystem* files, const std::string& path,
                                                                const std::shared_ptr<arrow::Schema>& schema,
                                                                const ParquetEncoding& encoding) {
  std::unique_ptr<ParquetFile> file(new ParquetFile(encoding));
  ARROW_ASSIGN_OR_RAISE(auto writable, files->Create(path));
  file->out_ = std::make_shared<HashingOutputStream>(std::move(writable));
  FailPoint("file.temp_created");
  // Writes the first bytes already.
  auto writer = parquet::arrow::FileWriter::Open(*schema, &file->pool_, file->out_, PropertiesOf(*schema, encoding, &file->pool_),
                                                 ArrowPropertiesOf());
  if (!writer.ok()) {
    file->Abort();
    (void)files->Remove(path);  // the first error is the one to report
    return writer.status();
  }
  file->writer_ = *std::move(writer);
  return file;
}

ParquetFile::ParquetFile(const ParquetEncoding& encoding) : encoding_(encoding) {}

ParquetFile::~ParquetFile() { Abort(); }

arrow::Status ParquetFile::WritePiece(const arrow::RecordBatch& piece) {
  if (row_group_full_ || rows_ == 0) {
    ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
    base_memory_ = pool_.bytes_allocated();
    row_group_full_ = false;
  }
  ARROW_RETURN_NOT_OK(writer_->WriteRecordBatch(piece));
  rows_ += piece.num_rows();
  row_group_full_ = pool_.bytes_allocated() - base_memory_ >= encoding_.row_group_memory;
  return arrow::Status::OK();
}

arrow::Status ParquetFile::Write(const arrow::RecordBatch& batch) {
  const int64_t bytes = arrow::util::ReferencedBufferSize(batch).ValueOr(0);
  const int64_t limit = std::min(kPieceBytes, std::max<int64_t>(encoding_.row_group_memory / 4, 1));
  const int64_t pieces = std::clamp<int64_t>(bytes / limit + 1, 1, std::max<int64_t>(batch.num_rows(), 1));
  const int64_t rows = (batch.num_rows() + pieces - 1) / pieces;
  for (int64_t first = 0; first < batch.num_rows(); first += rows) {
    ARROW_RETURN_NOT_OK(WritePiece(*batch.Slice(first, rows)));
  }
  return arrow::Status::OK();
}

arrow::Result<ManifestFile> ParquetFile::Close() {
  ARROW_RETURN_NOT_OK(writer_->Close());
  writer_.reset();
  ARROW_ASSIGN_OR_RAISE(int64_t bytes, out_->Tell());
  ARROW_RETURN_NOT_OK(out_->Close());
  ARROW_ASSIGN_OR_RAISE(auto sha256, out_->Sha256());
  return ManifestFile{.rows = rows_, .bytes = bytes, .sha256 = std::move(sha256)};
}

void ParquetFile::Abort() {
  if (out_ != nullptr) (void)out_->Abort();
  writer_.reset();  // writes its footer into the stream, which is closed and refuses it
}

int64_t ParquetFile::size() const { return out_->Tell().ValueOr(0) + pool_.bytes_allocated(); }

}  // namespace headrace
