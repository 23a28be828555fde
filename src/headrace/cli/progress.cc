#include "headrace/cli/progress.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/cli/text.h"

namespace headrace::cli {
namespace {

// Seconds over which the rate is taken: long enough to be calm, short enough to show a stall.
constexpr double kRateWindow = 5;
constexpr std::chrono::milliseconds kTerminalInterval{200};
constexpr std::chrono::milliseconds kLineInterval{5'000};
constexpr std::chrono::milliseconds kJsonInterval{1'000};
// The first one comes earlier: within a second of the start somebody sees that it runs.
constexpr std::chrono::milliseconds kFirstInterval{300};

}  // namespace

void ProgressText::Add(const Progress& progress) {
  // A restart goes back to the last checkpoint: what was done since then is no speed of what is done now.
  if (!recent_.empty() && (progress.rows < recent_.back().rows || progress.bytes < recent_.back().bytes)) recent_.clear();
  recent_.push_back(progress);
  while (recent_.size() > 2 && recent_[1].seconds <= progress.seconds - kRateWindow) recent_.pop_front();
  share_ = std::max(share_, std::min(progress.fraction, 1.0));
}

std::pair<double, double> ProgressText::Rate() const {
  if (recent_.empty()) return {0, 0};
  const Progress& last = recent_.back();
  const Progress& first = recent_.front();
  double seconds = last.seconds - first.seconds;
  if (seconds <= 0) return {0, 0};
  return {static_cast<double>(last.rows - first.rows) / seconds, static_cast<double>(last.bytes - first.bytes) / seconds};
}

double ProgressText::SecondsLeft() const {
  if (recent_.size() < 2 || share_ <= 0) return -1;
  const Progress& first = recent_.front();
  const Progress& last = recent_.back();
  double done = last.fraction - first.fraction;
  double seconds = last.seconds - first.seconds;
  if (first.fraction < 0 || done <= 0 || seconds <= 0) return -1;
  return (1 - share_) * seconds / done;
}

std::string ProgressText::Line(int width) const {
  if (recent_.empty()) return "";
  const Progress& now = recent_.back();
  auto [rows, bytes] = Rate();
  std::string line = fmt::format("{} rows  {}", WithCommas(now.rows), HumanBytes(static_cast<double>(now.bytes)));
  if (recent_.size() > 1) line += fmt::format("  {}/s", HumanBytes(bytes));
  if (share_ >= 0) line += fmt::format("  {:.0f} %", share_ * 100);
  if (double left = SecondsLeft(); left >= 0) line += fmt::format("  {} left", HumanSeconds(left));
  if (now.stalled_splits > 0) line += fmt::format("  {} stalled", now.stalled_splits);
  if (now.throttled_splits > 0) line += fmt::format("  {} throttled", now.throttled_splits);
  if (now.checkpoint > 0) line += fmt::format("  checkpoint {}", now.checkpoint);
  return line.substr(0, static_cast<size_t>(std::max(width - 1, 1)));
}

std::string ProgressText::Json() const {
  if (recent_.empty()) return "{}";
  const Progress& now = recent_.back();
  auto [rows, bytes] = Rate();
  double left = SecondsLeft();
  auto known = [](double value) { return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value); };
  nlohmann::ordered_json json = {{"rows", now.rows},
                                 {"bytes", now.bytes},
                                 {"rows_per_second", rows},
                                 {"bytes_per_second", bytes},
                                 {"fraction", known(share_)},
                                 {"seconds_left", known(left)},
                                 {"estimated_rows", known(static_cast<double>(now.estimated_rows))},
                                 {"open_splits", now.open_splits},
                                 {"queued_splits", now.queued_splits},
                                 {"finished_splits", now.finished_splits},
                                 {"stalled_splits", now.stalled_splits},
                                 {"throttled_splits", now.throttled_splits},
                                 {"seconds", now.seconds},
                                 {"checkpoint", now.checkpoint}};
  if (now.estimated_rows >= 0) json["estimated_rows"] = now.estimated_rows;
  return nlohmann::ordered_json{{"progress", std::move(json)}}.dump();
}

ProgressReporter::ProgressReporter(Console* console, std::function<Progress()> look) : console_(console), look_(std::move(look)) {
  if (console_->wants_progress()) thread_ = std::jthread([this](const std::stop_token& stop) { Report(stop); });
}

ProgressReporter::~ProgressReporter() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  console_->EndProgress();
}

void ProgressReporter::Report(const std::stop_token& stop) {
  auto interval = console_->terminal() ? kTerminalInterval : console_->json() ? kJsonInterval : kLineInterval;
  ProgressText text;
  std::unique_lock<std::mutex> lock(mutex_);
  auto wait = std::min(interval, kFirstInterval);
  while (true) {
    wake_.wait_for(lock, stop, wait, [] { return false; });
    wait = interval;
    if (stop.stop_requested() && !console_->json()) return;
    text.Add(look_());
    if (console_->terminal()) {
      console_->ShowProgress(text.Line(console_->width()));
    } else {
      // A last JSON line always shows the end; other readers have the report.
      console_->ProgressLine(console_->json() ? text.Json() : text.Line(200));
    }
    if (stop.stop_requested()) return;
  }
}

}  // namespace headrace::cli
