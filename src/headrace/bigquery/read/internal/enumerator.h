// Plans a table read: one session for the whole job, one split per stream of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "headrace/bigquery/read/internal/session.h"
#include "headrace/bigquery/read/internal/state.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

class StreamEnumerator final : public SplitEnumerator {
 public:
  /// Opens a client when a plan is made, not before.
  using PoolMaker = std::function<arrow::Result<std::shared_ptr<rpc::ChannelPool>>()>;

  /// `state` is a Snapshot, or nothing for a new job.
  static arrow::Result<std::unique_ptr<StreamEnumerator>> Make(PoolMaker pool, std::shared_ptr<const SourceOptions> options,
                                                               TableName table, const JobContext& context,
                                                               std::optional<std::string_view> state);

  arrow::Status Start() override;
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Result<NextSplit> Next() override;
  void AddSplitsBack(std::vector<Split> splits) override;
  void AddSuccessors(std::vector<Split> splits) override { AddSplitsBack(std::move(splits)); }
  int64_t queued() const override { return static_cast<int64_t>(state_.queue.size()); }
  int64_t estimated_rows() const override { return state_.planned ? state_.estimated_rows : -1; }
  std::map<std::string, std::string> facts() const override;
  std::string Snapshot() const override { return SerializePlanState(state_); }
  void Cancel() override { stop_.request_stop(); }

 private:
  StreamEnumerator(PoolMaker pool, std::shared_ptr<const SourceOptions> options, TableName table, const JobContext& context)
      : pool_(std::move(pool)), options_(std::move(options)), table_(std::move(table)), context_(context) {}
  /// The result's schema from the session's, with the order of columns in state_.
  arrow::Status SetSchema();
  /// The descriptor of a split that is handed out; the queue's have no schema, which would be there once for each stream.
  arrow::Result<std::string> WithSchema(const std::string& descriptor) const;
  std::string WithoutSchema(std::string descriptor) const;
  arrow::Status Plan(const Session& session);
  /// Refuses streams that would double rows; warns when there are none although there should be.
  arrow::Status CheckStreams(const Session& session) const;

  const PoolMaker pool_;
  const std::shared_ptr<const SourceOptions> options_;
  const TableName table_;
  const JobContext context_;
  std::stop_source stop_;
  PlanState state_;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace headrace::bigquery
