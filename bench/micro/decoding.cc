#include <cstring>
#include <utility>

#include <arrow/buffer.h>
#include <fmt/format.h>

#include "bench/micro/cases.h"
#include "headrace/bigquery/read/internal/decoder.h"

namespace headrace::bench {
namespace {

/// The bytes that a decoder reads, copied into memory from where the decoder has its own.
Client Copy(Prepared* prepared, std::string_view table, Packing packing) {
  return {"copy", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const Responses* responses, prepared->ResponsesOf(table, packing));
            return Measure(state, AmountsOf(*responses), [&](size_t i) -> arrow::Status {
              const arrow::Buffer& bytes = *responses->each[i].message.rows;
              ARROW_ASSIGN_OR_RAISE(const auto copy, arrow::AllocateBuffer(bytes.size(), bigquery::ArrowDecoder::Pool()));
              std::memcpy(copy->mutable_data(), bytes.data(), static_cast<size_t>(bytes.size()));
              benchmark::DoNotOptimize(copy->data());
              benchmark::ClobberMemory();
              return arrow::Status::OK();
            });
          }};
}

}  // namespace

std::vector<Case> DecodingCases(Prepared* prepared) {
  std::vector<Case> cases;
  for (const Packing packing : {Packing::kAvro, Packing::kArrow}) {
    for (const std::string_view table : kTables) {
      Case one{.name = fmt::format("{}, {}", table, PackingName(packing)), .clients = {DecodeWithHeadrace(prepared, table, packing)}};
      if (packing == Packing::kArrow) one.clients.push_back(DecodeWithArrow(prepared, table, packing));
      one.clients.push_back(Copy(prepared, table, packing));
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace headrace::bench
