// The rows of a read session: projected, restricted and sampled once, kept for all of its streams and for later sessions that ask for the
// same.
//
// A ReadView is immutable. ReadViewCache may be used from any thread; two threads that want the same view make it once.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "headrace/local/kept_rows.h"
#include "headrace/local/row_range.h"
#include "headrace/local/session.pb.h"
#include "headrace/local/table_store.h"
#include "headrace/types/type_table.h"

namespace headrace::local {

class ReadView {
 public:
  /// INVALID_ARGUMENT for unknown fields or a wrong restriction, in the service's words.
  static arrow::Result<std::shared_ptr<const ReadView>> Make(std::shared_ptr<const StoredTable> table, const SessionState& session);

  const RowBatches& rows() const { return rows_; }
  /// The selected columns as BigQuery has them.
  const TableSchema& columns() const { return columns_; }
  /// What the service calls its estimates: rows and bytes of the selected columns before the restriction.
  int64_t scanned_rows() const { return table_->rows.rows; }
  int64_t scanned_bytes() const { return scanned_bytes_; }
  /// What the view holds beyond the table's own memory.
  int64_t extra_bytes() const { return extra_bytes_; }
  /// Those of this view's rows that lie in a range of the table's. Streams are cut before the restriction, as the service does it, so a
  /// stream may have none (case U45).
  RowRange RowsIn(RowRange table_rows) const { return {kept_.Before(table_rows.begin), kept_.Before(table_rows.end)}; }
  /// Where one of this view's rows lies in the table.
  int64_t TableRowOf(int64_t row) const { return kept_.RowOf(row); }

 private:
  std::shared_ptr<const StoredTable> table_;
  TableSchema columns_;
  RowBatches rows_;
  KeptRows kept_;
  int64_t scanned_bytes_ = 0;
  int64_t extra_bytes_ = 0;
};

/// The form that a session asks for TIMESTAMP(12).
TimestampPrecision PrecisionOf(const SessionState& session);

class ReadViewCache {
 public:
  explicit ReadViewCache(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  arrow::Result<std::shared_ptr<const ReadView>> Get(const std::shared_ptr<const StoredTable>& table, const SessionState& session);

 private:
  struct Entry {
    std::mutex making;
    std::shared_ptr<const ReadView> view;
    std::list<std::string>::iterator position;
  };
  void Trim();

  const int64_t limit_bytes_;
  std::mutex mutex_;
  std::list<std::string> recent_;  // newest first
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace headrace::local
