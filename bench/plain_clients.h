// Clients without anything of Headrace's, as somebody would write them who wants the rows and nothing else: no retries, no limits, no
// state.
#pragma once

#include <string>

#include "bench/meter.h"
#include "bench/raw_tcp.h"
#include "headrace/base/error.h"

namespace headrace::bench {

struct ReadPlan {
  std::string endpoint{};     // HOST:PORT, plaintext
  std::string table{};        // projects/P/datasets/D/tables/T
  std::string compression{};  // none, lz4 or zstd, of Arrow's buffers
  bool avro = false;
  int streams = 1;
  std::string file{};  // Parquet, written anew; empty = the rows are dropped
};

/// Takes the messages as bytes and drops them: what the transport alone costs. Its rows are those that the session was estimated to have.
arrow::Result<Work> ReadBytes(const ReadPlan& plan);
/// As many bytes as the session was estimated to have, from a socket: what is left when there is no gRPC.
arrow::Result<Work> ReadRawTcp(const ReadPlan& plan, const TcpSender& sender);
/// The generated stub, and Arrow's own reader for each message; `tuned` with the channel settings and the allocator's settings that were
/// measured as good. Arrow only. With `plan.file`, what is read goes through Arrow's own Parquet writer (ZSTD, one thread) into that file.
arrow::Result<Work> ReadWithStub(const ReadPlan& plan, bool tuned);

}  // namespace headrace::bench
