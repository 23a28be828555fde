// Avro container files, read block by block, whole or in splits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <arrow/io/interfaces.h>

#include "headrace/avro/block_codec.h"
#include "headrace/avro/container_writer.h"
#include "headrace/avro/schema.h"

namespace headrace::avro {

struct ContainerLimits {
  int64_t max_header_bytes = int64_t{32} << 20;  // the schema is most of it
  int64_t max_block_bytes = int64_t{512} << 20;  // as stored, and decompressed
};

struct ContainerBlock {
  int64_t row_count = 0;
  std::string_view rows{};  // decompressed; valid until the next call
  int64_t position = 0;     // of the block in the file, for errors
};

/// Used by one thread. Wrong bytes are DATA_LOSS with their position in the file; a codec that is not read is UNIMPLEMENTED by name.
class ContainerReader {
 public:
  /// Reads the header.
  static arrow::Result<std::unique_ptr<ContainerReader>> Open(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                              ContainerLimits limits = {});

  const std::shared_ptr<const Schema>& schema() const { return schema_; }
  BlockCompression compression() const { return compression_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Reads only the split [begin, end) of the file: the blocks whose preceding sync marker begins in it. Splits that together cover the
  /// file give each block exactly once. Before the first Next.
  arrow::Status SetSplit(int64_t begin, int64_t end);
  /// The next block that has rows, or nothing at the end.
  arrow::Result<std::optional<ContainerBlock>> Next();

 private:
  ContainerReader(std::shared_ptr<arrow::io::RandomAccessFile> file, ContainerLimits limits) : file_(std::move(file)), limits_(limits) {}
  arrow::Status ReadHeader();
  arrow::Status ParseHeader(std::string_view bytes, bool whole, bool* complete);
  arrow::Result<std::string_view> Bytes(int64_t position, int64_t size);
  arrow::Status Damaged(int64_t position, std::string_view why) const;

  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  ContainerLimits limits_;
  int64_t file_size_ = 0;
  std::shared_ptr<const Schema> schema_;
  BlockCompression compression_ = BlockCompression::kNull;
  std::unique_ptr<BlockCodec> codec_;
  std::map<std::string, std::string> metadata_;
  SyncMarker sync_{};
  int64_t position_ = 0;    // of the next block
  int64_t data_start_ = 0;  // of the first block
  int64_t end_ = 0;         // a block whose marker begins here or later belongs to another split
  std::shared_ptr<arrow::Buffer> ahead_;
  int64_t ahead_position_ = 0;
  std::string plain_;
};

}  // namespace headrace::avro
