// The seam between the file sink and its formats: a FormatWriter turns batches into the bytes of one file and appends them to a stream.
//
// It never seeks, so the stream may be a pipe; it knows nothing of names, checkpoints or hashes. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>

#include "headrace/base/error.h"
#include "headrace/files/file_format.h"

namespace headrace {

/// The checked options of one file, whatever its format; each format reads its own members.
struct FileEncoding {
  FileKind kind{};
  arrow::Compression::type codec = arrow::Compression::ZSTD;  // inside the file: Parquet, Arrow, Avro
  int64_t row_group_rows = 1'000'000;                         // Parquet
  int64_t row_group_memory = int64_t{64} << 20;               // Parquet: bytes of encoded columns after which a row group ends
  int column_threads = 1;                                     // Parquet: columns that are encoded at the same time
  std::string csv_null_value{};
  bool csv_nested_as_json = false;
};

class FormatWriter {
 public:
  virtual ~FormatWriter() = default;
  /// After an error the writer is only destroyed.
  virtual arrow::Status Write(const arrow::RecordBatch& batch) = 0;
  /// Writes what ends a file; the stream stays open. Nothing is called after it.
  virtual arrow::Status Finish() = 0;
  /// Bytes that the writer holds and the stream does not have yet.
  virtual int64_t held() const = 0;
  /// The most memory that it ever held.
  virtual int64_t peak_memory() const = 0;
};

/// Refuses by column what a file of this format cannot hold.
arrow::Status CheckFormatSchema(const FileEncoding& encoding, const arrow::Schema& schema);
/// May write the first bytes already. The stream outlives the writer; it may be closed before the writer is destroyed.
arrow::Result<std::unique_ptr<FormatWriter>> MakeFormatWriter(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                              const std::shared_ptr<arrow::io::OutputStream>& out);

}  // namespace headrace
