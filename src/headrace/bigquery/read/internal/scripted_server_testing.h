// A real gRPC server of BigQueryRead on 127.0.0.1 that serves given rows and follows a script of faults. For tests.
//
// Scripts are set before the calls they are for; everything may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/util/compression.h>

#include "headrace/base/error.h"
#include "headrace/bigquery/read/internal/state.h"

namespace headrace::bigquery {

/// What happens to one call after so many messages of it.
struct Fault {
  enum class Kind { kStatus, kHang, kCleanEnd, kGarbage, kWrongRowCount, kOtherFormat, kClaimsMore, kSkip, kDouble };
  Kind kind = Kind::kStatus;
  int after_messages = 0;
  Code code = Code::kUnavailable;
  std::string message = "scripted";
  int64_t retry_delay_ms = -1;
};

struct ServedTable {
  std::vector<std::shared_ptr<arrow::RecordBatch>> streams{};
  std::shared_ptr<arrow::Schema> schema{};     // in the service's order
  SourceFormat format = SourceFormat::kArrow;  // of the rows, until a session asks for another
  bool schema_as_sent = false;                 // descriptors have no schema, as those of version 1
  int64_t rows_per_message = 100;
  int64_t rows_per_message_of_primaries = 0;  // 0 = as all
  arrow::Compression::type codec = arrow::Compression::UNCOMPRESSED;
  bool response_lz4 = false;  // whole responses, where that makes them smaller
  bool ignore_offsets = false;
  bool full_ipc_streams = false;  // fact U48
  bool schema_in_first = false;   // of each call, as the service does
  bool report_progress = true;
  bool progress_end_only = false;   // the start of each response stays 0
  double progress_end_share = 1;    // of the right fraction: below 1 the responses do not meet
  std::string behind_rows{};        // bytes behind the IPC message of each response
  bool empty_messages = false;      // one without rows before each
  bool empty_tell_nothing = false;  // nor a fraction in those
  bool empty_message_at_end = false;
  int32_t throttle_percent = 0;
  int64_t expire_seconds = 0;    // of the session, since 1970; 0 = not told
  bool other_session = false;    // sessions get the schema of the format that was not asked for
  int64_t estimated_rows = -1;   // that the session says; -1 = those there are
  bool one_stream_name = false;  // every stream has the name of the first
  bool nameless_stream = false;  // the first has none
  bool can_split = false;        // else SplitReadStream is UNIMPLEMENTED
  double split_at = -1;          // where a stream is split whatever was asked for, of its rows; negative = as asked
  bool splits_into_itself = false;
  bool primaries_ignore_offsets = false;
};

class ScriptedServer {
 public:
  explicit ScriptedServer(ServedTable table);
  ~ScriptedServer();

  std::string endpoint() const;
  std::string StreamName(int index) const;
  /// The descriptor of a stream, as a plan would make it.
  StreamState Descriptor(int index) const;
  /// The n-th fault is for the n-th call of ReadRows; calls beyond the script go well. Likewise CreateReadSession (kStatus and kHang only).
  void ScriptReads(std::vector<Fault> faults);
  void ScriptSessions(std::vector<Fault> faults);
  /// Likewise SplitReadStream: kStatus, kHang, and kCleanEnd for an answer without names.
  void ScriptSplits(std::vector<Fault> faults);
  /// Every ReadRows of that stream meets this fault.
  void FailReadsOf(const std::string& stream, Fault fault);
  /// Every later ReadRows meets this fault.
  void FailAllReads(Fault fault);
  /// No call of ReadRows sends a message beyond its first `of_each_call`, until more are allowed.
  void AllowMessages(int64_t of_each_call);
  /// Closes every connection and begins to listen on the same port again; the state stays.
  void Restart();

  struct Call {
    std::string stream;
    int64_t offset = 0;
    double deadline_seconds = 0;  // until the call's deadline
  };
  std::vector<Call> reads() const;
  struct SplitCall {
    std::string stream;
    double fraction = 0;
    double deadline_seconds = 0;
  };
  std::vector<SplitCall> splits() const;
  /// What a split stream's parts are named.
  static std::string Primary(const std::string& stream) { return stream + "-a"; }
  static std::string Remainder(const std::string& stream) { return stream + "-b"; }
  /// Serialized requests.
  std::vector<std::string> session_requests() const;
  int64_t finished_reads() const;
  /// Waits (at most 30 s) until that many reads have ended on the server, or are hanging.
  bool WaitForFinished(int64_t reads) const;
  bool WaitForHanging(int64_t reads) const;
  /// Waits until so many SplitReadStream calls were answered.
  bool WaitForSplits(int64_t splits) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::bigquery
