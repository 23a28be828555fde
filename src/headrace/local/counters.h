// What the service did, for tests: sessions, streams, each opening of a stream and how it ended. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/local/faults.h"
#include "headrace/local/session_name.h"

namespace headrace::local {

class Counters {
 public:
  void SessionCreated(const std::string& table);
  /// Counts an opening; the number names it in the calls below. `stream` is the name of the stream `of` as the client gave it.
  int64_t StreamOpened(const std::string& stream, const StreamName& of, int64_t offset);
  void MessageSent(const std::string& stream, int64_t opening, int64_t rows, int64_t bytes);
  void StreamEnded(const std::string& stream, int64_t opening, Code code);
  /// Counts a call to split; the number names it in the call below.
  int64_t SplitAsked(const std::string& stream, const StreamName& of, double fraction);
  /// `accepted`: the answer has two names.
  void SplitAnswered(const std::string& stream, int64_t split, bool accepted, Code code);

  /// A message was sent as it had been encoded for an earlier call.
  void MessageWasKept() { kept_.fetch_add(1, std::memory_order_relaxed); }

  std::string ToJson(const std::vector<FaultScript::Count>& faults) const;

 private:
  struct Opening {
    int64_t offset = 0;
    int64_t rows = 0;
    int64_t messages = 0;
    std::string status{};  // empty while it runs
  };
  struct Split {
    double fraction = 0;
    bool accepted = false;
    std::string status{};  // empty while it runs
  };
  struct Stream {
    std::string table{};
    int64_t index = 0;
    StreamPart part = StreamPart::kOriginal;
    int64_t rows = 0;
    int64_t messages = 0;
    int64_t bytes = 0;
    std::vector<Opening> openings{};
    std::vector<Split> splits{};
  };
  Opening* Find(const std::string& stream, int64_t opening);
  /// Null when no more details are kept.
  Stream* Remember(const std::string& stream, const StreamName& of);

  mutable std::mutex mutex_;
  int64_t sessions_ = 0;
  std::map<std::string, int64_t> sessions_by_table_;
  int64_t read_rows_calls_ = 0;
  int64_t split_calls_ = 0;
  int64_t splits_accepted_ = 0;
  int64_t remembered_ = 0;  // openings and splits kept; the newest are left out beyond kMaxOpenings
  int64_t forgotten_ = 0;
  std::atomic<int64_t> kept_{0};
  std::map<std::string, Stream> streams_;
};

}  // namespace headrace::local
