#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>

#include "bench/micro/cases.h"

namespace headrace::bench {
namespace {

/// One compressed buffer, and how long it is plain.
struct Packed {
  std::shared_ptr<arrow::Buffer> bytes{};
  int64_t plain_bytes = 0;
};

arrow::Result<Packed> Pack(const arrow::Buffer& plain, arrow::util::Codec* codec) {
  ARROW_ASSIGN_OR_RAISE(auto bytes, arrow::AllocateResizableBuffer(codec->MaxCompressedLen(plain.size(), plain.data())));
  ARROW_ASSIGN_OR_RAISE(const int64_t size, codec->Compress(plain.size(), plain.data(), bytes->size(), bytes->mutable_data()));
  ARROW_RETURN_NOT_OK(bytes->Resize(size));
  return Packed{.bytes = std::move(bytes), .plain_bytes = plain.size()};
}

/// What a response holds of compressed bytes: each buffer of each column as a frame of its own, as Arrow's writer makes them, or all rows
/// as one block.
arrow::Result<std::vector<Packed>> PackedOf(const Response& response, Packing packing, arrow::util::Codec* codec) {
  if (packing == Packing::kLz4Block) return std::vector{Packed{response.message.rows, response.message.uncompressed_bytes}};
  std::vector<Packed> packed;
  for (const auto& column : response.rows->columns()) {
    for (const auto& buffer : column->data()->buffers) {
      if (buffer == nullptr || buffer->size() == 0) continue;
      ARROW_ASSIGN_OR_RAISE(packed.emplace_back(), Pack(*buffer, codec));
    }
  }
  return packed;
}

/// The codec that Arrow has, into memory that is there already: of what decompressing costs, what nobody can leave out.
Client CodecAlone(Prepared* prepared, std::string_view table, Packing packing) {
  return {"codec", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const Responses* responses, prepared->ResponsesOf(table, packing));
            const auto compression = packing == Packing::kLz4Block     ? arrow::Compression::LZ4
                                     : packing == Packing::kLz4Buffers ? arrow::Compression::LZ4_FRAME
                                                                       : arrow::Compression::ZSTD;
            ARROW_ASSIGN_OR_RAISE(const auto codec, arrow::util::Codec::Create(compression));
            std::vector<std::vector<Packed>> packed;
            int64_t longest = 0;
            for (const Response& response : responses->each) {
              ARROW_ASSIGN_OR_RAISE(packed.emplace_back(), PackedOf(response, packing, codec.get()));
              for (const Packed& buffer : packed.back()) longest = std::max(longest, buffer.plain_bytes);
            }
            ARROW_ASSIGN_OR_RAISE(const auto plain, arrow::AllocateBuffer(longest));
            return Measure(state, AmountsOf(*responses), [&](size_t i) -> arrow::Status {
              for (const Packed& buffer : packed[i]) {
                ARROW_ASSIGN_OR_RAISE(const int64_t size, codec->Decompress(buffer.bytes->size(), buffer.bytes->data(), buffer.plain_bytes,
                                                                            plain->mutable_data()));
                if (size != buffer.plain_bytes) return arrow::Status::Invalid("the codec gave ", size, " bytes of ", buffer.plain_bytes);
              }
              return arrow::Status::OK();
            });
          }};
}

}  // namespace

std::vector<Case> CodecCases(Prepared* prepared) {
  std::vector<Case> cases;
  for (const Packing packing : {Packing::kLz4Buffers, Packing::kZstdBuffers, Packing::kLz4Block}) {
    for (const std::string_view table : kTables) {
      Case one{.name = fmt::format("{}, {}", table, PackingName(packing)), .clients = {DecodeWithHeadrace(prepared, table, packing)}};
      if (packing != Packing::kLz4Block) one.clients.push_back(DecodeWithArrow(prepared, table, packing));
      one.clients.push_back(CodecAlone(prepared, table, packing));
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace headrace::bench
