// A source of whole numbers, scripted by tests: ranges of rows as splits, errors and cuts at given rows, waits that a test releases.
//
// A split's descriptor is "BEGIN-END" and its position the number of the next row ("" = BEGIN). Everything is thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/runtime/source.h"

namespace headrace::testing {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

Split MakeRangeSplit(std::string id, Range range, std::string position = "");
Range RangeOf(const Split& split);
/// The next row of a split.
int64_t NextRowOf(const Split& split);
/// The splits in an enumerator's snapshot.
std::vector<Split> SplitsInSnapshot(std::string_view snapshot);

/// Memory-only: what a source's enumerator does after its plan.
class RangeEnumerator final : public SplitEnumerator {
 public:
  explicit RangeEnumerator(std::vector<Split> splits) : queue_(splits.begin(), splits.end()) {}
  arrow::Status Start() override { return arrow::Status::OK(); }
  std::shared_ptr<arrow::Schema> schema() const override;
  arrow::Result<NextSplit> Next() override;
  void AddSplitsBack(std::vector<Split> splits) override;
  void AddSuccessors(std::vector<Split> splits) override { AddSplitsBack(std::move(splits)); }
  int64_t queued() const override { return static_cast<int64_t>(queue_.size()); }
  std::string Snapshot() const override;
  void Cancel() override {}

 private:
  std::deque<Split> queue_;
};

/// What a test scripts and sees. One script outlives the jobs that read it, as a service outlives its clients.
struct SourceScript {
  std::vector<Range> splits{};  // ids s0, s1, ...
  std::string first_id{};       // of the first split; empty = s0
  int64_t batch_rows = 3;
  int64_t batch_bytes = 0;  // taken from the job's budget for each batch
  int64_t wire_bytes_per_row = 10;
  Boundedness boundedness = Boundedness::kBounded;
  int64_t estimated_rows = -1;

  std::mutex mutex;
  std::condition_variable changed;
  arrow::Status start_error{};
  bool block_start = false;
  std::map<int64_t, std::deque<arrow::Status>> errors{};  // before this row; each once
  std::map<int64_t, int64_t> cuts{};                      // before this row: near part ends at the second
  std::set<int64_t> blocked{};                            // Next waits before this row until it is taken out or cancelled
  bool throttled = false;
  bool cuttable = false;       // readers answer requests for cuts
  bool refuse_cuts = false;    // by never again being willing to
  int64_t least_cut_rows = 2;  // left
  // Seen:
  int cut_requests = 0;
  int starting = 0;  // calls of Start in progress
  int waiting = 0;   // readers at a blocked row
  int plans = 0;
  int restores = 0;
  std::vector<std::pair<std::string, int64_t>> opened{};  // split id and first row of each reader
  int64_t rows_sent = 0;
  int open_readers = 0;
  int most_open_readers = 0;

  void Unblock(int64_t row);
  /// Waits (bounded) until `n` readers stand at a blocked row.
  bool WaitForBlocked(int n);
};

class ScriptedSource final : public Source {
 public:
  explicit ScriptedSource(std::shared_ptr<SourceScript> script) : script_(std::move(script)) {}
  Boundedness boundedness() const override { return script_->boundedness; }
  bool supports_cuts() const override { return script_->cuttable; }
  Lineage lineage() const override { return {}; }
  arrow::Result<std::unique_ptr<SplitEnumerator>> CreateEnumerator(const JobContext& context) const override;
  arrow::Result<std::unique_ptr<SplitEnumerator>> RestoreEnumerator(const JobContext& context, std::string_view state) const override;
  arrow::Result<std::unique_ptr<SplitReader>> OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                         Split split) const override;

 private:
  std::shared_ptr<SourceScript> script_;
};

/// A batch of the rows begin..end-1.
std::shared_ptr<arrow::RecordBatch> MakeRows(int64_t begin, int64_t end);
std::vector<int64_t> RowsOf(const arrow::RecordBatch& batch);

}  // namespace headrace::testing
