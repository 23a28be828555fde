// Avro container files, written: header, blocks of rows, sync markers.
// https://avro.apache.org/docs/1.12.0/specification/#object-container-files
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <arrow/record_batch.h>

#include "headrace/avro/block_codec.h"
#include "headrace/avro/encoder.h"
#include "headrace/avro/schema.h"
#include "headrace/base/random.h"

namespace headrace::avro {

using SyncMarker = std::array<char, 16>;

struct ContainerOptions {
  BlockCompression compression = BlockCompression::kNull;
  int compression_level = 0;  // 0 = the compression's own
  /// Rows are put into blocks of at most about this many bytes before compression; a larger row is a block of its own. BigQuery wants at
  /// most 16 MB in one block of a load file.
  int64_t block_bytes = int64_t{1} << 20;
  std::map<std::string, std::string> metadata{};  // more entries of the header; keys "avro.*" are the format's
};

/// Puts bytes into strings and leaves writing them to the caller. Used by one thread.
class ContainerWriter {
 public:
  /// `columns` as for Encoder; `random` makes the sync marker and is used here only.
  static arrow::Result<std::unique_ptr<ContainerWriter>> Make(std::shared_ptr<const Schema> schema, std::shared_ptr<arrow::Schema> columns,
                                                              const ContainerOptions& options, Random* random);

  /// Appends what is complete to `out`: the header at the first call, then full blocks. The rows of an incomplete block wait here.
  arrow::Status Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out);
  /// Appends the last block (and the header, when no row came). Later rows begin a new block.
  arrow::Status Finish(std::string* out);
  /// Bytes that wait for their block to become complete.
  int64_t waiting_bytes() const { return static_cast<int64_t>(rows_.size()); }

 private:
  ContainerWriter() = default;
  arrow::Status EndBlock(std::string* out);

  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<BlockCodec> codec_;
  int64_t block_bytes_ = 0;
  SyncMarker sync_{};
  std::string header_;  // empty once it is written
  std::string rows_;
  int64_t row_count_ = 0;
  std::string packed_;
};

}  // namespace headrace::avro
