// The compressions of container files' blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/util/compression.h>

#include "headrace/base/error.h"

namespace headrace::avro {

/// Those that are read and written; bzip2 and xz are refused by name.
enum class BlockCompression { kNull, kDeflate, kSnappy, kZstandard };
/// The name in the file's metadata: "zstandard" for kZstandard.
std::string_view CodecName(BlockCompression compression);
/// The inverse; UNIMPLEMENTED names a codec that is not read.
arrow::Result<BlockCompression> CodecFromName(std::string_view name);

/// Compresses and decompresses whole blocks. Used by one thread.
class BlockCodec {
 public:
  /// `level` 0 is the compression's own default; null and snappy have none.
  static arrow::Result<std::unique_ptr<BlockCodec>> Make(BlockCompression compression, int level = 0);
  virtual ~BlockCodec() = default;

  virtual arrow::Status Compress(std::string_view plain, std::string* packed) = 0;
  /// Fails when the bytes are not this codec's, their checksum is wrong (snappy) or they are more than `limit` bytes when plain; no more
  /// than that is ever reserved.
  virtual arrow::Status Decompress(std::string_view packed, int64_t limit, std::string* plain) = 0;
};

}  // namespace headrace::avro
