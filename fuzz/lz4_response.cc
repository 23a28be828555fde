// Whole-response LZ4: a claimed size (four bytes, little-endian) and a block.
#include <cstring>

#include <arrow/util/compression.h>

#include "fuzz/fuzz_target.h"
#include "headrace/bigquery/read/internal/decoder.h"
#include "headrace/bigquery/read/internal/response_lz4.h"

namespace headrace::fuzz {
namespace {

std::string Seed(const std::string& text, int32_t claim) {
  auto codec = arrow::util::Codec::Create(arrow::Compression::LZ4).ValueOrDie();
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  auto size = static_cast<int64_t>(text.size());
  std::string seed(4 + static_cast<size_t>(codec->MaxCompressedLen(size, data)), '\0');
  std::memcpy(seed.data(), &claim, 4);
  auto* block = reinterpret_cast<uint8_t*>(seed.data()) + 4;
  seed.resize(4 + static_cast<size_t>(codec->Compress(size, data, static_cast<int64_t>(seed.size()) - 4, block).ValueOrDie()));
  return seed;
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  int32_t claim = 0;
  if (bytes.size() < sizeof claim) return;
  std::memcpy(&claim, bytes.data(), sizeof claim);
  // On the heap and exact, so that a sanitizer sees every byte too many.
  const auto block = arrow::Buffer::FromString(std::string(bytes.substr(sizeof claim)));
  auto whole = bigquery::DecompressResponse(*block, claim, bigquery::ArrowDecoder::Pool());
  if (!whole.ok()) return;
  if ((*whole)->size() != claim) __builtin_trap();
  // Every byte was written.
  auto again = bigquery::DecompressResponse(*block, claim, bigquery::ArrowDecoder::Pool());
  if (!again.ok() || !(*again)->Equals(**whole)) __builtin_trap();
}

std::vector<std::string> Seeds() {
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += "row " + std::to_string(i * i);
  auto size = static_cast<int32_t>(rows.size());
  return {"", Seed("x", 1), Seed(rows, size), Seed(rows, size + 1), Seed(rows, INT32_MAX), Seed(std::string(5000, 'z'), 5000)};
}

}  // namespace headrace::fuzz
