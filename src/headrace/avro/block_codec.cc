#include "headrace/avro/block_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <arrow/util/crc32.h>
#include <fmt/format.h>

namespace headrace::avro {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"null", "deflate", "snappy", "zstandard"};
constexpr size_t kChecksumBytes = 4;

const uint8_t* Data(std::string_view bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }
uint8_t* Data(std::string* bytes) { return reinterpret_cast<uint8_t*>(bytes->data()); }

arrow::Status TooLarge(int64_t limit) {
  return MakeError({.code = Code::kResourceExhausted, .reason = "BLOCK_TOO_LARGE"},
                   fmt::format("more than {} bytes when decompressed", limit));
}
arrow::Status Damaged(std::string_view why) { return MakeError({.code = Code::kDataLoss, .reason = "BAD_AVRO_DATA"}, std::string(why)); }

class NullCodec final : public BlockCodec {
 public:
  arrow::Status Compress(std::string_view plain, std::string* packed) override {
    packed->assign(plain);
    return arrow::Status::OK();
  }
  arrow::Status Decompress(std::string_view packed, int64_t limit, std::string* plain) override {
    if (static_cast<int64_t>(packed.size()) > limit) return TooLarge(limit);
    plain->assign(packed);
    return arrow::Status::OK();
  }
};

// deflate and zstandard do not say (or need not) how long they are when plain, so they are decompressed piece by piece.
class StreamCodec final : public BlockCodec {
 public:
  StreamCodec(std::unique_ptr<arrow::util::Codec> codec, bool several) : codec_(std::move(codec)), several_(several) {}

  arrow::Status Compress(std::string_view plain, std::string* packed) override {
    const auto size = static_cast<int64_t>(plain.size());
    packed->resize(static_cast<size_t>(codec_->MaxCompressedLen(size, Data(plain))));
    ARROW_ASSIGN_OR_RAISE(int64_t written, codec_->Compress(size, Data(plain), static_cast<int64_t>(packed->size()), Data(packed)));
    packed->resize(static_cast<size_t>(written));
    return arrow::Status::OK();
  }

  arrow::Status Decompress(std::string_view packed, int64_t limit, std::string* plain) override {
    constexpr int64_t kLeast = 4096;
    ARROW_ASSIGN_OR_RAISE(auto stream, codec_->MakeDecompressor());
    plain->resize(static_cast<size_t>(std::min(limit, std::max<int64_t>(kLeast, static_cast<int64_t>(packed.size()) * 4))));
    size_t read = 0;
    size_t written = 0;
    while (true) {
      auto result = stream->Decompress(static_cast<int64_t>(packed.size() - read), Data(packed) + read,
                                       static_cast<int64_t>(plain->size() - written), Data(plain) + written);
      if (!result.ok()) return Damaged(result.status().message());
      read += static_cast<size_t>(result->bytes_read);
      written += static_cast<size_t>(result->bytes_written);
      if (stream->IsFinished()) {
        // zstandard allows several frames one after the other. What follows a deflate stream is ignored: fastavro leaves three bytes of a
        // checksum there.
        if (!several_ || read == packed.size()) break;
        ARROW_RETURN_NOT_OK(stream->Reset());
        continue;
      }
      if (written == plain->size()) {
        if (static_cast<int64_t>(written) >= limit) return TooLarge(limit);
        plain->resize(static_cast<size_t>(std::min(limit, static_cast<int64_t>(written) * 2)));
      } else if (result->bytes_read == 0 && result->bytes_written == 0) {
        return Damaged("the compressed bytes are cut off");
      }
    }
    plain->resize(written);
    return arrow::Status::OK();
  }

 private:
  std::unique_ptr<arrow::util::Codec> codec_;
  bool several_;
};

// Snappy's own format, then the CRC-32 of the plain bytes, most significant byte first.
class SnappyCodec final : public BlockCodec {
 public:
  explicit SnappyCodec(std::unique_ptr<arrow::util::Codec> codec) : codec_(std::move(codec)) {}

  arrow::Status Compress(std::string_view plain, std::string* packed) override {
    const auto size = static_cast<int64_t>(plain.size());
    packed->resize(static_cast<size_t>(codec_->MaxCompressedLen(size, Data(plain))));
    ARROW_ASSIGN_OR_RAISE(int64_t written, codec_->Compress(size, Data(plain), static_cast<int64_t>(packed->size()), Data(packed)));
    packed->resize(static_cast<size_t>(written));
    const uint32_t sum = arrow::internal::crc32(0, plain.data(), plain.size());
    for (const int shift : {24, 16, 8, 0}) packed->push_back(static_cast<char>(sum >> shift));
    return arrow::Status::OK();
  }

  arrow::Status Decompress(std::string_view packed, int64_t limit, std::string* plain) override {
    if (packed.size() < kChecksumBytes) return Damaged("no room for the checksum");
    const std::string_view body = packed.substr(0, packed.size() - kChecksumBytes);
    ARROW_ASSIGN_OR_RAISE(const uint64_t size, PlainSize(body));
    if (size > static_cast<uint64_t>(limit)) return TooLarge(limit);
    plain->resize(static_cast<size_t>(size));
    auto written = codec_->Decompress(static_cast<int64_t>(body.size()), Data(body), static_cast<int64_t>(size), Data(plain));
    if (!written.ok() || *written != static_cast<int64_t>(size)) return Damaged("the compressed bytes are no snappy");
    uint32_t want = 0;
    for (const char c : packed.substr(body.size())) want = want << 8 | static_cast<unsigned char>(c);
    const uint32_t sum = arrow::internal::crc32(0, plain->data(), plain->size());
    if (sum != want) return Damaged(fmt::format("the checksum is {:08x}, not {:08x}", sum, want));
    return arrow::Status::OK();
  }

 private:
  // Snappy begins with it, as a varint: https://github.com/google/snappy/blob/main/format_description.txt. Its densest element makes 64
  // bytes of two or three.
  static arrow::Result<uint64_t> PlainSize(std::string_view body) {
    constexpr uint64_t kDensest = 64;
    uint64_t size = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (body.empty()) break;
      const auto byte = static_cast<unsigned char>(body.front());
      body.remove_prefix(1);
      size |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte >= 0x80) continue;
      if (size > body.size() * kDensest) break;
      return size;
    }
    return Damaged("the compressed bytes are no snappy");
  }

  std::unique_ptr<arrow::util::Codec> codec_;
};

}  // namespace

std::string_view CodecName(BlockCompression compression) { return kNames[static_cast<size_t>(compression)]; }

arrow::Result<BlockCompression> CodecFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<BlockCompression>(i);
  }
  return Unsupported("Avro", fmt::format("the Avro codec '{}' is not read; null, deflate, snappy and zstandard are", name));
}

arrow::Result<std::unique_ptr<BlockCodec>> BlockCodec::Make(BlockCompression compression, int level) {
  const int chosen = level == 0 ? arrow::util::Codec::UseDefaultCompressionLevel() : level;
  switch (compression) {
    case BlockCompression::kNull:
      break;
    case BlockCompression::kDeflate: {
      arrow::util::GZipCodecOptions options;
      options.gzip_format = arrow::util::GZipFormat::DEFLATE;
      options.compression_level = chosen;
      ARROW_ASSIGN_OR_RAISE(auto codec, arrow::util::Codec::Create(arrow::Compression::GZIP, options));
      return std::make_unique<StreamCodec>(std::move(codec), false);
    }
    case BlockCompression::kZstandard: {
      ARROW_ASSIGN_OR_RAISE(auto codec, arrow::util::Codec::Create(arrow::Compression::ZSTD, chosen));
      return std::make_unique<StreamCodec>(std::move(codec), true);
    }
    case BlockCompression::kSnappy:
      if (level != 0) return InvalidOption("compression_level", "snappy has no levels");
      ARROW_ASSIGN_OR_RAISE(auto codec, arrow::util::Codec::Create(arrow::Compression::SNAPPY));
      return std::make_unique<SnappyCodec>(std::move(codec));
  }
  if (level != 0) return InvalidOption("compression_level", "without compression there are no levels");
  return std::make_unique<NullCodec>();
}

}  // namespace headrace::avro
