#include "bench/micro/cases.h"

#include <utility>

#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>

#include "headrace/bigquery/read/internal/row_decoder.h"

namespace headrace::bench {
namespace {

arrow::Status CheckSame(const arrow::RecordBatch& seen, const arrow::RecordBatch& wanted) {
  if (seen.Equals(wanted)) return arrow::Status::OK();
  return arrow::Status::Invalid("what was decoded is not what was encoded");
}

}  // namespace

arrow::Status Measure(benchmark::State& state, const std::vector<Amount>& amounts, const std::function<arrow::Status(size_t)>& work) {
  Amount all;
  size_t next = 0;
  arrow::Status status;
  for ([[maybe_unused]] auto _ : state) {
    status = work(next);
    if (!status.ok()) break;
    all.rows += amounts[next].rows;
    all.bytes += amounts[next].bytes;
    if (++next == amounts.size()) next = 0;
  }
  state.SetItemsProcessed(all.rows);
  state.SetBytesProcessed(all.bytes);
  state.counters["row"] = benchmark::Counter(static_cast<double>(all.rows), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  return status;
}

std::vector<Amount> AmountsOf(const Responses& responses) {
  std::vector<Amount> amounts;
  amounts.reserve(responses.each.size());
  for (const Response& response : responses.each) amounts.push_back({.rows = response.rows->num_rows(), .bytes = response.column_bytes});
  return amounts;
}

Client DecodeWithHeadrace(Prepared* prepared, std::string_view table, Packing packing) {
  return {"headrace", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const Responses* responses, prepared->ResponsesOf(table, packing));
            ARROW_ASSIGN_OR_RAISE(const auto decoder, bigquery::RowDecoder::Make(responses->stream, responses->schema));
            const auto decode = [&](size_t i) -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
              const auto& message = responses->each[i].message;
              ARROW_ASSIGN_OR_RAISE(const auto bytes, bigquery::RowBytes(message, responses->stream));
              return decoder->DecodeRows(bytes, message.row_count);
            };
            ARROW_ASSIGN_OR_RAISE(const auto first, decode(0));
            ARROW_RETURN_NOT_OK(CheckSame(*first, *responses->each[0].rows));
            return Measure(state, AmountsOf(*responses), [&](size_t i) { return decode(i).status(); });
          }};
}

Client DecodeWithArrow(Prepared* prepared, std::string_view table, Packing packing) {
  return {"arrow", [=](benchmark::State& state) -> arrow::Status {
            ARROW_ASSIGN_OR_RAISE(const Responses* responses, prepared->ResponsesOf(table, packing));
            arrow::ipc::DictionaryMemo memo;
            arrow::io::BufferReader schema_bytes(arrow::Buffer::FromString(responses->stream.wire_schema));
            ARROW_ASSIGN_OR_RAISE(const auto schema, arrow::ipc::ReadSchema(&schema_bytes, &memo));
            auto options = arrow::ipc::IpcReadOptions::Defaults();
            options.use_threads = false;
            const auto decode = [&](size_t i) {
              arrow::io::BufferReader bytes(responses->each[i].message.rows);
              return arrow::ipc::ReadRecordBatch(schema, &memo, options, &bytes);
            };
            ARROW_ASSIGN_OR_RAISE(const auto first, decode(0));
            ARROW_RETURN_NOT_OK(CheckSame(*first, *responses->each[0].rows));
            return Measure(state, AmountsOf(*responses), [&](size_t i) { return decode(i).status(); });
          }};
}

}  // namespace headrace::bench
