// The Storage Read API without its transport: what CreateReadSession answers and which rows a ReadRows call means. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/avro/schema.h"
#include "headrace/base/clock.h"
#include "headrace/local/ignored_offsets.h"
#include "headrace/local/read_view.h"
#include "headrace/local/session_name.h"
#include "headrace/local/table_store.h"

namespace headrace::local {

struct ReadApiOptions {
  int empty_table_streams = 0;
  bool streams_as_asked = false;
  IgnoredOffsets ignore_offsets = IgnoredOffsets::kNone;
  uint64_t seed = 0;
  int64_t cache_bytes = int64_t{512} << 20;
  Clock* clock = nullptr;
};

/// A ReadRows call that is in order: rows [begin + offset, end) of the view.
struct OpenedStream {
  StreamName name{};
  std::string table{};
  std::shared_ptr<const ReadView> view{};
  RowRange range{};
  int64_t offset = 0;
  std::shared_ptr<const avro::Schema> avro_schema{};  // null in an Arrow session

  /// The shares of the stream's rows in the table that lie before the stream's row `offset` (which exists), and before and at the row that
  /// comes before `offset`: with a restriction they differ (stream.proto, StreamStats.Progress). After the last row it is 1.
  double ProgressBefore(int64_t offset) const;
  double ProgressAfter(int64_t offset) const;
};

/// The names of the two parts.
struct SplitStream {
  std::string primary{};
  std::string remainder{};
};

class ReadApi {
 public:
  ReadApi(TableStore* tables, ReadApiOptions options);

  /// Errors carry the code and the words of the service (facts R2, R6, R8, R14).
  arrow::Result<google::cloud::bigquery::storage::v1::ReadSession> CreateReadSession(
      const google::cloud::bigquery::storage::v1::CreateReadSessionRequest& request);
  arrow::Result<OpenedStream> Open(const StreamName& name, int64_t offset);
  /// None when the stream cannot be split there. The same call gives the same names.
  arrow::Result<std::optional<SplitStream>> Split(const StreamName& name, double fraction) const;

 private:
  /// The version that the session reads. Errors: the session expired, the table is not what it was.
  arrow::Result<std::shared_ptr<const StoredTable>> TableOf(const SessionState& state) const;
  arrow::Status CheckFormat(const google::cloud::bigquery::storage::v1::ReadSession& wanted) const;
  /// The version that the session is to read.
  arrow::Result<std::shared_ptr<const StoredTable>> FindTable(const google::cloud::bigquery::storage::v1::ReadSession& wanted,
                                                              const TableName& name) const;
  static arrow::Result<std::shared_ptr<const avro::Schema>> AvroSchemaOf(const SessionState& state, const ReadView& view);
  int64_t StreamCount(const google::cloud::bigquery::storage::v1::CreateReadSessionRequest& request, const ReadView& view) const;

  TableStore* const tables_;
  const ReadApiOptions options_;
  ReadViewCache views_;
};

}  // namespace headrace::local
