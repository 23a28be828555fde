#include <algorithm>
#include <array>
#include <utility>

#include "headrace/base/file_system.h"
#include "headrace/cli/config_file.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/help.h"
#include "headrace/cli/verbs.h"
#include "headrace/cli/version.h"

namespace headrace::cli {
namespace {

int Run(Session session) {
  if (session.arguments.print_config) return PrintConfig(session);
  switch (*session.arguments.verb) {
    case Verb::kCopy:
      return Copy(session);
    case Verb::kResume:
      return Resume(session);
    case Verb::kPlan:
      return Plan(session);
    case Verb::kSchema:
      return Schema(session);
    case Verb::kBench:
      return Bench(session);
    case Verb::kServe:
      return Serve(session);
    case Verb::kCompletion:
      return Completion(session);
    case Verb::kMan:
      return PrintManual(session);
    case Verb::kVersion:
      session.console.Result(VersionText());
      return kExitDone;
  }
  return kExitUsage;
}

}  // namespace

int Fail(Console& console, const arrow::Status& status, std::string_view resume_command) {
  console.Error(status, resume_command);
  constexpr std::array<std::string_view, 4> kUsage = {"USAGE", "INVALID_OPTION", "UNSUPPORTED", "INVALID_FAULTS"};
  const ErrorInfo* info = GetErrorInfo(status);
  const bool usage = info != nullptr && std::ranges::find(kUsage, std::string_view(info->reason)) != kUsage.end();
  return usage ? kExitUsage : kExitFailed;
}

int RunProgram(std::vector<std::string> given, SignalWatcher& signals) {
  ConsoleOptions early{.json = AsksForJson(given), .data_on_output = WritesDataToOutput(given)};
  auto arguments = ParseArguments(std::move(given));
  auto status = arguments.status();
  if (status.ok() && !arguments->help && !arguments->help_all) status = ApplyConfig(LocalFileSystem(), &*arguments);
  if (!status.ok()) {
    Console console(early);
    return Fail(console, status);
  }
  Console console({.json = arguments->options.contains("json"),
                   .quiet = arguments->options.contains("quiet"),
                   .data_on_output = arguments->verb == Verb::kCopy && !arguments->print_config && !arguments->positionals.empty() &&
                                     arguments->positionals.back() == "-"});
  if (!arguments->verb || arguments->help || arguments->help_all) {
    std::string text = arguments->verb ? VerbHelp(*arguments->verb, arguments->help_all) : ProgramHelp();
    text.pop_back();  // Result ends the line
    console.Result(text);
    return console.result_written() ? kExitDone : kExitFailed;
  }
  int code = Run({*arguments, console, signals});
  return code == kExitDone && !console.result_written() ? kExitFailed : code;
}

}  // namespace headrace::cli
