#include "headrace/cli/help.h"

#include <algorithm>

#include <fmt/format.h>

#include "headrace/cli/exit_code.h"
#include "headrace/cli/version.h"

namespace headrace::cli {
namespace {

std::string Left(const catalog::Option& option) {
  std::string_view value = catalog::ValueName(option);
  return fmt::format("{}{}{}", catalog::CommandLineName(option.name), value.empty() ? "" : " ", value);
}

std::string OptionLines(const VerbRow& row, bool all, bool* hidden_some) {
  const auto options = OptionsOf(row);
  size_t width = 0;
  for (const catalog::Option* option : options) {
    if (all || option->common) width = std::max(width, Left(*option).size());
  }
  std::string text;
  std::string_view group;
  for (const catalog::Option* option : options) {
    if (!all && !option->common) {
      *hidden_some = true;
      continue;
    }
    if (option->group != group) text += fmt::format("{}:\n", option->group);
    group = option->group;
    std::string standard =
        option->kind == catalog::OptionKind::kFlag || option->default_text == "none" ? "" : fmt::format(" [{}]", option->default_text);
    text += fmt::format("  {:<{}}  {}{}\n", Left(*option), width, option->help, standard);
  }
  return text;
}

std::string ExitCodeText() {
  std::string text;
  for (const ExitCodeRow& row : kExitCodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", static_cast<int>(row.code), row.meaning);
  return text;
}

}  // namespace

std::string ProgramHelp() {
  std::string text =
      fmt::format("headrace {}: moves data out of BigQuery, and between file formats\n\nusage: headrace VERB ...\n", Version());
  for (const VerbRow& row : Verbs()) text += fmt::format("  {:<10}  {}\n", row.name, row.summary);
  text += fmt::format("\n'headrace VERB --help' explains one of them, '--help-all' lists all its options.\n\nexample:\n  {}\n",
                      RowOf(Verb::kCopy).example);
  text += fmt::format("\nexit codes: {}.\nThe first SIGINT or SIGTERM stops a job at a checkpoint, the second at once.\n", ExitCodeText());
  return text;
}

std::string VerbHelp(Verb verb, bool all) {
  const VerbRow& about = RowOf(verb);
  std::string text = fmt::format("usage: headrace {}{}{}\n\n", about.name, about.usage.empty() ? "" : " ", about.usage);
  if (about.about.empty()) {
    text += fmt::format("{}\n", about.summary);
  } else {
    text += fmt::format("{}\n", about.about);
  }
  text += fmt::format("\n  {}\n\n", about.example);
  bool hidden_some = false;
  text += OptionLines(about, all, &hidden_some);
  if (hidden_some) text += fmt::format("'headrace {} --help-all' lists all options.\n", VerbName(verb));
  return text;
}

}  // namespace headrace::cli
