// One Parquet file being written under a temporary name, with row groups bounded by rows and by memory. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/files/manifest.h"

namespace parquet::arrow {
class FileWriter;
}

namespace headrace {

struct ParquetEncoding {
  arrow::Compression::type compression = arrow::Compression::ZSTD;
  int64_t row_group_rows = 1'000'000;
  int64_t row_group_memory = int64_t{64} << 20;  // bytes of encoded columns after which a row group ends
};

/// The codec of an option's value; InvalidOption names those there are.
arrow::Result<arrow::Compression::type> CompressionFromName(const std::string& name);

/// Refuses by name what a Parquet file of ours cannot hold.
arrow::Status CheckParquetSchema(const arrow::Schema& schema);

class ParquetFile {
 public:
  /// Makes the file; passes the fail point "file.temp_created".
  static arrow::Result<std::unique_ptr<ParquetFile>> Create(FileSystem* files, const std::string& path,
                                                            const std::shared_ptr<arrow::Schema>& schema, const ParquetEncoding& encoding);
  ~ParquetFile();  // aborts when not closed

  /// After an error only Abort is of use.
  arrow::Status Write(const arrow::RecordBatch& batch);
  /// Writes the footer, syncs and closes. The answer has no name yet.
  arrow::Result<ManifestFile> Close();
  /// Closes without syncing; what is on disk is of no use.
  void Abort();

  int64_t rows() const { return rows_; }
  /// Bytes in the file and on their way to it.
  int64_t size() const;
  /// The most memory that the encoder held.
  int64_t peak_memory() const { return pool_.max_memory(); }

 private:
  explicit ParquetFile(const ParquetEncoding& encoding);
  arrow::Status WritePiece(const arrow::RecordBatch& piece);

  const ParquetEncoding encoding_;
  arrow::ProxyMemoryPool pool_{arrow::default_memory_pool()};  // counts what the encoder holds; outlives writer_
  std::shared_ptr<HashingOutputStream> out_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  int64_t base_memory_ = 0;  // held by an empty row group
  int64_t rows_ = 0;
  bool row_group_full_ = false;
};

}  // namespace headrace
