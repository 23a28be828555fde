#include "headrace/bigquery/read/internal/response_lz4.h"

#include <utility>

#include <arrow/util/compression.h>
#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

// A byte of a block lengthens what it becomes by at most 255 (lz4_Block_format.md: extended lengths).
constexpr int64_t kHighestRatio = 255;

arrow::Status Corrupt(const std::string& why) {
  return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .method = "ReadRows", .reason = "CORRUPT_RESPONSE"},
                   "the LZ4 block of a response cannot be decompressed: " + why);
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Buffer>> DecompressResponse(const arrow::Buffer& block, int64_t uncompressed_bytes,
                                                                 arrow::MemoryPool* pool) {
  if (uncompressed_bytes > kLargestUncompressedResponse) {
    return Corrupt(fmt::format("it claims {} bytes; no response has more than {}", uncompressed_bytes, kLargestUncompressedResponse));
  }
  if (uncompressed_bytes <= 0 || (uncompressed_bytes - 1) / kHighestRatio >= block.size()) {
    return Corrupt(fmt::format("{} bytes cannot become the {} that it claims", block.size(), uncompressed_bytes));
  }
  ARROW_ASSIGN_OR_RAISE(const auto codec, arrow::util::Codec::Create(arrow::Compression::LZ4));  // the raw block format
  ARROW_ASSIGN_OR_RAISE(auto bytes, arrow::AllocateBuffer(uncompressed_bytes, pool));
  const auto size = codec->Decompress(block.size(), block.data(), uncompressed_bytes, bytes->mutable_data());
  if (!size.ok()) return Corrupt(size.status().message());
  if (*size != uncompressed_bytes) return Corrupt(fmt::format("it becomes {} bytes, not the {} that it claims", *size, uncompressed_bytes));
  return std::shared_ptr<arrow::Buffer>(std::move(bytes));
}

}  // namespace headrace::bigquery
