// Rows of a bounded source one after the other, with the position of each: what RowReader stands on, whatever the type of its records.
//
// A feed owns its reader threads; destroying it stops them and waits. One thread at a time uses it, but for Cancel, which any may call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/runtime/read.h"
#include "headrace/runtime/row_schema.h"

namespace headrace {

struct ReadRowsOptions {
  /// Readers, memory and order, as for Read. A metric registry in `read.context` also gets recordsSkipped.
  ReadOptions read{};
  /// From RowReader::Snapshot: go on there instead of planning anew. The source must be made with the same options.
  std::string state{};
};

/// Of the whole reading, also before a Snapshot that it goes on from.
struct RowCounts {
  int64_t rows = 0;     // whose position is behind
  int64_t records = 0;  // of these rows
  int64_t skipped = 0;  // rows without a record

  bool operator==(const RowCounts&) const = default;
};

class RowFeed {
 public:
  /// Plans the source, which may take long. A continuous source is refused.
  static arrow::Result<std::unique_ptr<RowFeed>> Open(std::shared_ptr<const Source> source, const ReadRowsOptions& options);
  ~RowFeed();

  const RowSchema& schema() const;
  /// The row at the position; null at the end. The same again until RowDone. It holds until the next call.
  arrow::Result<const RowView*> NextRow();
  /// The position moves behind the row, which gave so many records.
  void RowDone(int64_t records);
  /// Ends the reading with `error`, after the names of split, row and position, which stays before the row. Answers the whole error, as
  /// NextRow does from now on.
  arrow::Status Fail(const arrow::Status& error);
  /// The position of every split, for ReadRowsOptions::state; also after an error.
  arrow::Result<std::string> Snapshot() const;
  RowCounts counts() const;
  /// Ends what waits, now and later, with Cancelled.
  void Cancel();

 private:
  class Impl;
  explicit RowFeed(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
