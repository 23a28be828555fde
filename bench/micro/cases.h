// The cases of the micro benchmarks: in each of them Headrace and its peers do the same work over the same bytes.
//
// A client sets itself up, checks that what it gives is right, and then measures. Cases and clients are registered with Google Benchmark
// as CASE/CLIENT. One thread.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include <arrow/status.h>

#include "bench/micro/responses.h"

namespace headrace::bench {

struct Client {
  std::string name{};  // "headrace", or the peer's
  std::function<arrow::Status(benchmark::State&)> run{};
};

struct Case {
  std::string name{};  // "narrow8, Avro"
  std::vector<Client> clients{};
};

/// Rows of the formats: Avro beside copying the same bytes, Arrow also beside Arrow's own reader, which checks nothing.
std::vector<Case> DecodingCases(Prepared* prepared);
/// Compressed responses, beside Arrow's own reader and the codec alone.
std::vector<Case> CodecCases(Prepared* prepared);
/// Row restrictions, beside Arrow's kernels called directly.
std::vector<Case> FilterCases(Prepared* prepared);

/// Calls `work(i)` for i from 0 to `count` - 1, round and round, and reports what it cost. `amounts[i]` is what the i-th call has done.
struct Amount {
  int64_t rows = 0;
  int64_t bytes = 0;  // of the columns
};
arrow::Status Measure(benchmark::State& state, const std::vector<Amount>& amounts, const std::function<arrow::Status(size_t)>& work);

/// What each of the responses is.
std::vector<Amount> AmountsOf(const Responses& responses);
/// Headrace's decoder over a table's responses, decompression included.
Client DecodeWithHeadrace(Prepared* prepared, std::string_view table, Packing packing);
/// Arrow's own reader over them, which believes what it reads.
Client DecodeWithArrow(Prepared* prepared, std::string_view table, Packing packing);

}  // namespace headrace::bench
