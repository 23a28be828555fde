// Responses of the local service as a reader gets them, made once for each table and packing. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/record_batch.h>

#include "headrace/base/error.h"
#include "headrace/bigquery/read/internal/state.h"
#include "headrace/bigquery/read/internal/wire.h"

namespace headrace::bench {

inline constexpr std::array<std::string_view, 3> kTables = {"usa_names", "narrow8", "wide"};

enum class Packing { kAvro, kArrow, kLz4Buffers, kZstdBuffers, kLz4Block };
/// As part of a case's name: "Arrow, LZ4 buffers" for kLz4Buffers.
std::string_view PackingName(Packing packing);

struct Response {
  std::shared_ptr<arrow::RecordBatch> rows{};  // before they were encoded
  bigquery::ReadRowsMessage message{};
  int64_t column_bytes = 0;
};

struct Responses {
  std::shared_ptr<arrow::Schema> schema{};  // canonical
  bigquery::StreamState stream{};           // what a decoder is made of
  std::vector<Response> each{};
};

/// How much is prepared. A benchmark goes through all responses, round and round: there are more of them than the caches of one core hold,
/// and so many different rows that no branch is foretold from the last time.
struct Sizes {
  int64_t responses = 32;
  int64_t response_bytes = int64_t{1} << 20;  // of the columns, as the local service cuts them
  int64_t batches = 4;                        // for the filters: the local service keeps a table in batches ...
  int64_t batch_rows = 65'536;                // ... of so many rows, as headrace_bench_table writes them
};

class Prepared {
 public:
  explicit Prepared(Sizes sizes) : sizes_(sizes) {}
  /// Both stay valid as long as this object.
  arrow::Result<const Responses*> ResponsesOf(std::string_view table, Packing packing);
  arrow::Result<const arrow::RecordBatchVector*> BatchesOf(std::string_view table);

 private:
  arrow::Result<Responses> Make(std::string_view table, Packing packing) const;

  const Sizes sizes_;
  std::map<std::pair<std::string, Packing>, Responses> responses_;
  std::map<std::string, arrow::RecordBatchVector, std::less<>> batches_;
};

}  // namespace headrace::bench
