// What the tests of a stream's reader share: a table of numbered rows, a source of a scripted server, and all that a reader answers.
#pragma once

#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "headrace/bigquery/read/internal/scripted_server_testing.h"
#include "headrace/bigquery/read/source.h"

namespace headrace::bigquery {

inline constexpr int64_t kRows = 1000;

inline std::shared_ptr<arrow::RecordBatch> MakeRows(int64_t count, int64_t first = 0) {
  arrow::Int64Builder ids;
  arrow::StringBuilder names;
  for (int64_t i = first; i < first + count; ++i) {
    EXPECT_TRUE(ids.Append(i).ok());
    EXPECT_TRUE((i % 7 == 0 ? names.AppendNull() : names.Append(fmt::format("name-{}", i))).ok());
  }
  auto schema = arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8())});
  return arrow::RecordBatch::Make(schema, count, {*ids.Finish(), *names.Finish()});
}

inline ServedTable OneStream(int64_t rows = kRows) {
  auto batch = MakeRows(rows);
  return {.streams = {batch}, .schema = batch->schema()};
}

class RecordingLogger final : public Logger {
 public:
  void Log(LogLevel level, std::string_view message) override {
    std::lock_guard<std::mutex> guard(mutex_);
    lines_.push_back(fmt::format("{} {}", static_cast<int>(level), message));
  }
  std::vector<std::string> lines() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// A source of the server's table, and what an engine would lend it. Waits between attempts take no time.
struct Bench {
  explicit Bench(const ScriptedServer& server, SourceOptions options = {}) {
    clock.set_auto_advance(true);
    options.table = "p.d.t";
    options.bigquery_storage_endpoint = server.endpoint();
    auto made = Source::Make(options);
    EXPECT_TRUE(made.ok()) << made.status();
    source = *made;
    context.clock = &clock;
    context.random = &random;
    context.logger = &logger;
    context.metrics = &metrics;
    context.memory = &*memory;
    stream = server.Descriptor(0);
  }

  std::unique_ptr<SplitReader> Open(const std::shared_ptr<arrow::Schema>& schema, std::string position = {},
                                    std::string end_position = {}) const {
    auto reader = source->OpenReader(
        context, schema,
        {.id = "s", .descriptor = SerializeStreamState(stream), .position = std::move(position), .end_position = std::move(end_position)});
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }

  int64_t count(std::string_view name) { return metrics.counter(name)->value(); }

  ManualClock clock;
  SeededRandom random{1};
  RecordingLogger logger;
  MetricRegistry metrics;
  std::optional<MemoryBudget> memory{std::in_place, int64_t{64} << 20};
  JobContext context;
  std::shared_ptr<const Source> source;
  StreamState stream;
};

struct ReadAll {
  std::vector<int64_t> ids;
  std::vector<std::string> positions;
  std::vector<int64_t> batch_rows;
  std::vector<double> fractions;
  std::vector<Cut> cuts;
  arrow::Status status;
};

inline ReadAll Drain(SplitReader* reader) {
  ReadAll all;
  while (true) {
    auto next = reader->Next();
    if (!next.ok()) {
      all.status = next.status();
      return all;
    }
    all.fractions.push_back(reader->Progress().fraction);
    if (std::holds_alternative<End>(*next)) return all;
    if (auto* cut = std::get_if<Cut>(&*next)) {
      all.cuts.push_back(std::move(*cut));
      continue;
    }
    const auto& batch = std::get<Batch>(*next);
    const auto ids = std::static_pointer_cast<arrow::Int64Array>(batch.rows->GetColumnByName("id"));
    const auto names = std::static_pointer_cast<arrow::StringArray>(batch.rows->GetColumnByName("name"));
    for (int64_t i = 0; i < ids->length(); ++i) {
      all.ids.push_back(ids->Value(i));
      if (names != nullptr) {
        EXPECT_EQ(names->IsNull(i), ids->Value(i) % 7 == 0);
        if (names->IsValid(i)) {
          EXPECT_EQ(names->GetString(i), fmt::format("name-{}", ids->Value(i)));
        }
      }
    }
    all.positions.push_back(batch.position);
    all.batch_rows.push_back(batch.rows->num_rows());
  }
}

inline std::vector<int64_t> Range(int64_t from, int64_t to) {
  std::vector<int64_t> ids(static_cast<size_t>(to - from));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

inline std::vector<int64_t> Offsets(const ScriptedServer& server) {
  std::vector<int64_t> offsets;
  for (const auto& call : server.reads()) offsets.push_back(call.offset);
  return offsets;
}

}  // namespace headrace::bigquery
