// The program's two output streams: standard output for the result, standard error for progress, logs and errors.
//
// All functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/log.h"

namespace headrace::cli {

struct ConsoleOptions {
  bool json = false;   // standard error carries JSON lines too
  bool quiet = false;  // no progress, no information, only warnings and errors
  /// Standard output holds data: results go to standard error, where it is no failure that nobody reads them.
  bool data_on_output = false;
  std::FILE* out = stdout;
  std::FILE* err = stderr;
};

class Console final : public Logger {
 public:
  explicit Console(ConsoleOptions options);
  ~Console() override;  // leaves a progress line behind as it is, ended
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool json() const { return options_.json; }
  bool quiet() const { return options_.quiet; }
  /// Somebody may want to see how it goes on. Not in the middle of data on the same terminal.
  bool wants_progress() const { return wants_progress_; }
  /// Standard error is a terminal and takes lines that are rewritten.
  bool terminal() const { return terminal_; }
  /// Columns of that terminal.
  int width() const;

  /// One line of result on standard output (on standard error when there are data on standard output), flushed.
  void Result(std::string_view text);
  /// Information about this run for a person, on standard error; nothing when quiet.
  void Say(std::string_view text) { Log(LogLevel::kInfo, text); }
  /// Rewrites the progress line (terminal only).
  void ShowProgress(std::string_view line);
  /// A finished line of progress: text, or a JSON object when json() is set.
  void ProgressLine(std::string_view line);
  void EndProgress();
  /// "headrace: MESSAGE", code and reason on standard error; with json() the error object on standard output. `resume_command` may be
  /// empty.
  void Error(const arrow::Status& status, std::string_view resume_command = {});

  void Log(LogLevel level, std::string_view message) override;
  /// False once standard output could not be written: the result is lost and the exit code must say so.
  bool result_written() const { return !output_failed_; }

 private:
  struct Spdlog;
  void ClearLocked();
  /// What cannot be written there is dropped: a copy does not end because nobody hears of it (fmt::print would throw).
  void PrintError(std::string_view text);

  const ConsoleOptions options_;
  const bool terminal_;
  const bool colored_;
  const bool wants_progress_;
  std::mutex mutex_;
  bool line_open_ = false;  // the cursor stands behind a progress line
  std::atomic<bool> output_failed_{false};
  std::unique_ptr<Spdlog> log_;
};

/// {"error": {code, reason, message, ...}} without what is unknown.
std::string ErrorToJson(const arrow::Status& status, std::string_view resume_command);

}  // namespace headrace::cli
