// What the service did, for tests: sessions, streams, each opening of a stream and how it ended. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/local/faults.h"

namespace headrace::local {

class Counters {
 public:
  void SessionCreated(const std::string& table);
  /// Counts an opening; the number names it in the calls below.
  int64_t StreamOpened(const std::string& stream, const std::string& table, int64_t index, int64_t offset);
  void MessageSent(const std::string& stream, int64_t opening, int64_t rows, int64_t bytes);
  void StreamEnded(const std::string& stream, int64_t opening, Code code);

  std::string ToJson(const std::vector<FaultScript::Count>& faults) const;

 private:
  struct Opening {
    int64_t offset = 0;
    int64_t rows = 0;
    int64_t messages = 0;
    std::string status{};  // empty while it runs
  };
  struct Stream {
    std::string table{};
    int64_t index = 0;
    int64_t rows = 0;
    int64_t messages = 0;
    int64_t bytes = 0;
    std::vector<Opening> openings{};
  };
  Opening* Find(const std::string& stream, int64_t opening);

  mutable std::mutex mutex_;
  int64_t sessions_ = 0;
  std::map<std::string, int64_t> sessions_by_table_;
  int64_t read_rows_calls_ = 0;
  int64_t remembered_ = 0;  // openings kept; the newest are left out beyond kMaxOpenings
  int64_t forgotten_ = 0;
  std::map<std::string, Stream> streams_;
};

}  // namespace headrace::local
