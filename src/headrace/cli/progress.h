// The progress of a running job: one line rewritten on a terminal, lines now and then elsewhere, JSON lines with --json.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "headrace/cli/console.h"
#include "headrace/runtime/report.h"

namespace headrace::cli {

/// Turns snapshots into text. Keeps the last seconds, for a rate that follows the job without jumping. One thread.
class ProgressText {
 public:
  void Add(const Progress& progress);
  /// At most `width` columns.
  std::string Line(int width) const;
  std::string Json() const;

 private:
  double Share() const { return share_; }
  double SecondsLeft() const;
  /// Rows and bytes a second.
  std::pair<double, double> Rate() const;

  std::deque<Progress> recent_;
  double share_ = -1;  // the greatest fraction seen: the share done never goes back
};

/// Reports while it lives, on a thread of its own. `look` is called from that thread.
class ProgressReporter {
 public:
  ProgressReporter(Console* console, std::function<Progress()> look);
  ~ProgressReporter();
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

 private:
  void Report(const std::stop_token& stop);

  Console* console_;
  std::function<Progress()> look_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace headrace::cli
