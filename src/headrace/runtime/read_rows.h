// Rows on request: ReadRows turns each row of a source into 0 to n records of the caller's type.
//
//   auto orders = ReadRows<Order>(source, [](const RowView& row, Collector<Order> out) -> arrow::Status {
//     ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
//     return out.Emit({.id = id});
//   });
//
// A RowReader owns its reader threads; destroying it stops them and waits. One thread at a time uses it (the mapper is called on that
// thread), but for Cancel, which any may call. Splits are read side by side, each at most one batch ahead of what the mapper was given.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/runtime/collector.h"
#include "headrace/runtime/row_feed.h"

namespace headrace {

/// Called once for each row, synchronously: the row and the collector are good until it returns. A row without a record is skipped, and
/// counted. An error ends the reading before that row.
template <typename T>
using RowMapper = std::function<arrow::Status(const RowView& row, Collector<T> out)>;

template <typename T>
class RowReader {
 public:
  RowReader(std::unique_ptr<RowFeed> feed, RowMapper<T> mapper)
      : feed_(std::move(feed)), mapper_(std::move(mapper)), collected_(std::make_shared<internal::Collected<T>>()) {}

  /// The next record; nothing at the end. With the last record of a row the position moves behind the row.
  arrow::Result<std::optional<T>> Next() {
    ARROW_ASSIGN_OR_RAISE(const bool more, Fill());
    if (!more) return std::optional<T>();
    std::optional<T> record(std::move(collected_->records[next_]));
    if (++next_ == collected_->records.size()) EndRow();
    return record;
  }

  /// Gives every record to `consume`. The position moves behind a row once all its records were consumed: an error of `consume` ends the
  /// reading before that row.
  arrow::Status ForEach(const std::function<arrow::Status(T)>& consume) {
    while (true) {
      ARROW_ASSIGN_OR_RAISE(const bool more, Fill());
      if (!more) return arrow::Status::OK();
      Whole whole{this};
      for (; next_ < collected_->records.size(); ++next_) {
        auto status = consume(std::move(collected_->records[next_]));
        if (!status.ok()) return Fail(status);
      }
      whole.reader = nullptr;
      EndRow();
    }
  }

  const RowSchema& schema() const { return feed_->schema(); }
  RowCounts counts() const { return feed_->counts(); }
  /// Where the reading is, as bytes for ReadRowsOptions::state: reading from there gives every row that is not behind the position, and
  /// no other. Of a row whose records were handed out in part, all records come again. Also after an error.
  arrow::Result<std::string> Snapshot() const { return feed_->Snapshot(); }
  /// Ends what waits, now and later, with Cancelled. Any thread.
  void Cancel() { feed_->Cancel(); }

 private:
  /// Forgets the records of a row when what takes them throws: some are gone, so the row is mapped again if the reading goes on.
  struct Whole {
    ~Whole() {
      if (reader != nullptr) reader->Forget();
    }
    RowReader* reader;
  };

  /// Whether there is a record to hand out; maps rows until there is.
  arrow::Result<bool> Fill() {
    while (next_ >= collected_->records.size()) {
      if (collected_->gate.misused()) return Fail(internal::CollectorGate::Misuse());
      ARROW_ASSIGN_OR_RAISE(const RowView* row, feed_->NextRow());
      if (row == nullptr) return false;
      ARROW_RETURN_NOT_OK(Map(*row));
      if (collected_->records.empty()) EndRow();
    }
    if (collected_->gate.misused()) return Fail(internal::CollectorGate::Misuse());
    return true;
  }

  arrow::Status Map(const RowView& row) {
    // A mapper that throws leaves nothing behind: the row is still to come.
    struct Call {
      ~Call() {
        collected->gate.Close();
        if (!whole) collected->records.clear();
      }
      internal::Collected<T>* collected;
      bool whole = false;
    } call{collected_.get()};
    Forget();
    collected_->error = arrow::Status::OK();
    auto status = mapper_(row, Collector<T>(collected_, collected_->gate.Open()));
    if (!collected_->error.ok()) status = collected_->error;
    if (!status.ok()) return Fail(status);
    call.whole = true;
    return status;
  }

  void EndRow() {
    feed_->RowDone(static_cast<int64_t>(collected_->records.size()));
    Forget();
  }

  arrow::Status Fail(const arrow::Status& error) {
    Forget();
    return feed_->Fail(error);
  }

  void Forget() {
    collected_->records.clear();
    next_ = 0;
  }

  std::unique_ptr<RowFeed> feed_;
  RowMapper<T> mapper_;
  std::shared_ptr<internal::Collected<T>> collected_;
  size_t next_ = 0;  // of the collected records, all of one row
};

/// `make` gets the schema once and answers the mapper: the place to look columns up (RowSchema::Find) and to refuse a schema before any
/// row.
template <typename T>
arrow::Result<std::unique_ptr<RowReader<T>>> ReadRowsWith(std::shared_ptr<const Source> source,
                                                          const std::function<arrow::Result<RowMapper<T>>(const RowSchema& schema)>& make,
                                                          const ReadRowsOptions& options = {}) {
  ARROW_ASSIGN_OR_RAISE(auto feed, RowFeed::Open(std::move(source), options));
  ARROW_ASSIGN_OR_RAISE(auto mapper, make(feed->schema()));
  return std::make_unique<RowReader<T>>(std::move(feed), std::move(mapper));
}

template <typename T>
arrow::Result<std::unique_ptr<RowReader<T>>> ReadRows(std::shared_ptr<const Source> source, RowMapper<T> mapper,
                                                      const ReadRowsOptions& options = {}) {
  ARROW_ASSIGN_OR_RAISE(auto feed, RowFeed::Open(std::move(source), options));
  return std::make_unique<RowReader<T>>(std::move(feed), std::move(mapper));
}

}  // namespace headrace
