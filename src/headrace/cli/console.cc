#include "headrace/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

namespace headrace::cli {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool IsRewritableTerminal(std::FILE* file) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(file)) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

/// https://no-color.org: any value but an empty one switches colors off.
bool WantsColors() {
  const char* off = std::getenv("NO_COLOR");
  return off == nullptr || *off == '\0';
}

/// Bold red for errors, yellow for warnings (ECMA-48 SGR).
std::string Colored(std::string_view text, spdlog::level::level_enum level) {
  if (level < spdlog::level::warn) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", level == spdlog::level::warn ? "33" : "1;31", text);
}

/// Text from servers and files may hold anything; a JSON document may not.
std::string Dump(const nlohmann::ordered_json& json) { return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace); }

/// Control characters in messages of a server or in names could move the cursor or hide text.
std::string Printable(std::string_view text) {
  std::string clean;
  for (char c : text) clean += (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c;
  return clean;
}

/// Not where the same resume would end the same way: the error's text says what to do instead.
bool ResumeMayHelp(const arrow::Status& status) {
  const ErrorInfo* info = GetErrorInfo(status);
  if (info == nullptr) return true;
  constexpr std::array<std::string_view, 5> kForGood = {"SESSION_EXPIRED", "FILE_LOST", "FILE_CHANGED", "SCHEMA_CHANGED",
                                                        "CHECKPOINT_DAMAGED"};
  return std::ranges::find(kForGood, std::string_view(info->reason)) == kForGood.end();
}

}  // namespace

/// spdlog formats and filters; this sink hands finished lines back to the console, which knows about the progress line.
struct Console::Spdlog {
  class Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
   public:
    explicit Sink(Console* console) : console_(console) {}

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      std::string_view text(message.payload.data(), message.payload.size());
      std::string line;
      if (console_->options_.json) {
        auto level = spdlog::level::to_string_view(message.level);
        line = Dump({{"log", {{"level", std::string(level.data(), level.size())}, {"message", std::string(text)}}}}) + "\n";
      } else {
        std::string_view prefix = message.level == spdlog::level::warn ? "headrace: warning: " : "headrace: ";
        line = fmt::format("{}{}\n", console_->colored_ ? Colored(prefix, message.level) : std::string(prefix), Printable(text));
      }
      console_->ClearLocked();
      std::fwrite(line.data(), 1, line.size(), console_->options_.err);
    }
    void flush_() override { std::fflush(console_->options_.err); }

    Console* console_;
  };

  explicit Spdlog(Console* console) : logger("headrace", std::make_shared<Sink>(console)) {
    logger.set_level(console->options_.quiet ? spdlog::level::warn : spdlog::level::info);
    logger.flush_on(spdlog::level::trace);
  }
  spdlog::logger logger;
};

Console::Console(ConsoleOptions options)
    : options_(options),
      terminal_(!options.json && IsRewritableTerminal(options.err)),
      colored_(terminal_ && WantsColors()),
      wants_progress_(!options.quiet && !(options.data_on_output && isatty(fileno(options.out)) == 1)),
      log_(std::make_unique<Spdlog>(this)) {}

Console::~Console() { EndProgress(); }

int Console::width() const {
  winsize size{};
  if (ioctl(fileno(options_.err), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Console::Result(std::string_view text) {
  std::lock_guard<std::mutex> guard(mutex_);
  ClearLocked();
  if (options_.data_on_output) return PrintError(fmt::format("{}\n", text));
  bool written = std::fwrite(text.data(), 1, text.size(), options_.out) == text.size() && std::fputc('\n', options_.out) != EOF;
  if (!written || std::fflush(options_.out) != 0) output_failed_ = true;
}

void Console::ShowProgress(std::string_view line) {
  if (!terminal_ || options_.quiet) return;
  std::lock_guard<std::mutex> guard(mutex_);
  PrintError(fmt::format("\r{}\x1b[K", line));  // ESC [ K: erase to the end of the line (ECMA-48 EL)
  line_open_ = true;
}

void Console::ProgressLine(std::string_view line) {
  if (options_.quiet) return;
  std::lock_guard<std::mutex> guard(mutex_);
  ClearLocked();
  PrintError(fmt::format("{}\n", line));
}

void Console::EndProgress() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!line_open_) return;
  PrintError("\n");
  line_open_ = false;
}

void Console::ClearLocked() {
  if (!line_open_) return;
  PrintError("\r\x1b[K");
  line_open_ = false;
}

void Console::PrintError(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), options_.err);
  std::fflush(options_.err);
}

void Console::Log(LogLevel level, std::string_view message) {
  std::lock_guard<std::mutex> guard(mutex_);
  log_->logger.log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
}

void Console::Error(const arrow::Status& status, std::string_view resume_command) {
  EndProgress();
  if (!ResumeMayHelp(status)) resume_command = {};
  if (options_.json) {
    Result(ErrorToJson(status, resume_command));
    return;
  }
  std::string text = status.message();
  std::string kind(CodeName(CodeOf(status)));
  if (const ErrorInfo* info = GetErrorInfo(status)) {
    if (!info->reason.empty()) kind += ", " + info->reason;
    if (!info->method.empty()) kind += ", in " + info->method;
  }
  Log(LogLevel::kError, fmt::format("{} [{}]", text, kind));
  if (!resume_command.empty()) Log(LogLevel::kError, fmt::format("to go on from the last checkpoint: {}", resume_command));
}

std::string ErrorToJson(const arrow::Status& status, std::string_view resume_command) {
  nlohmann::ordered_json error = {{"code", std::string(CodeName(CodeOf(status)))}, {"reason", ""}, {"message", status.message()}};
  if (const ErrorInfo* info = GetErrorInfo(status)) {
    error["reason"] = info->reason;
    if (!info->service.empty()) error["service"] = info->service;
    if (!info->method.empty()) error["method"] = info->method;
    if (!info->resource.empty()) error["resource"] = info->resource;
    if (!info->column.empty()) error["column"] = info->column;
    if (info->row) error["row"] = *info->row;
    error["retryable"] = info->retryable;
  }
  nlohmann::ordered_json document = {{"error", std::move(error)}};
  if (!resume_command.empty()) document["resume_command"] = std::string(resume_command);
  return Dump(document);
}

}  // namespace headrace::cli
