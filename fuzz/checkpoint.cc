// Checkpoint files. The checksum would stop every mutation at the door, so an input is the state alone, and the frame of
// docs/formats/checkpoint.md is put around it here; one that carries the magic itself is taken as a whole file.
#include <openssl/sha.h>

#include "fuzz/fuzz_target.h"
#include "headrace/runtime/checkpoint_store.h"

namespace headrace::fuzz {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr size_t kHeaderBytes = kMagicBytes + 4 + 8;  // magic, version, length

std::string EncodedEmpty() { return EncodeCheckpoint(CheckpointState{}).ValueOr(std::string(kHeaderBytes + SHA256_DIGEST_LENGTH, '\0')); }

std::string Framed(std::string_view state) {
  static const std::string start = EncodedEmpty().substr(0, kMagicBytes + 4);
  std::string file = start;
  for (uint64_t length = state.size(), i = 0; i < 8; ++i, length >>= 8) file += static_cast<char>(length & 0xff);
  file += state;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(file.data()), file.size(), digest);
  file.append(reinterpret_cast<const char*>(digest), sizeof digest);
  return file;
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const std::string magic = EncodedEmpty().substr(0, kMagicBytes);
  auto state = DecodeCheckpoint(bytes.starts_with(magic) ? std::string(bytes) : Framed(bytes), "fuzzed");
  if (!state.ok()) return;
  // What was accepted can be written again and read again.
  auto again = EncodeCheckpoint(*state);
  if (again.ok() && !DecodeCheckpoint(*again, "again").ok()) __builtin_trap();
}

std::vector<std::string> Seeds() {
  CheckpointState state{.checkpoint = 3,
                        .job_name = "job",
                        .run_id = "0123abcd",
                        .configuration = {{"source", "bq:p.d.t"}},
                        .planned = true,
                        .prepared = true,
                        .schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("l", arrow::list(arrow::utf8()))}),
                        .sink_state = "sink",
                        .writer_states = {"w0", "w1"},
                        .committables = {"c0"}};
  std::vector<std::string> seeds = {""};
  for (const std::string& file : {EncodedEmpty(), EncodeCheckpoint(state).ValueOr("")}) {
    if (file.size() < kHeaderBytes + SHA256_DIGEST_LENGTH) continue;
    seeds.push_back(file);
    seeds.push_back(file.substr(kHeaderBytes, file.size() - kHeaderBytes - SHA256_DIGEST_LENGTH));
  }
  return seeds;
}

}  // namespace headrace::fuzz
