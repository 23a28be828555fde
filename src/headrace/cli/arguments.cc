#include "headrace/cli/arguments.h"

#include <algorithm>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "headrace/base/fail_point.h"
#include "headrace/catalog/nearest_word.h"
#include "headrace/catalog/option_value.h"

namespace headrace::cli {
namespace {

// CLI11 takes a value in square brackets apart as a list of values. A byte that no argument can start with by accident keeps values whole;
// it is taken off again after parsing.
constexpr char kKeepWhole = '\x01';

std::string Shielded(const std::string& argument) {
  if (argument.starts_with('[')) return kKeepWhole + argument;
  size_t equals = argument.find('=');
  if (argument.starts_with("--") && equals != std::string::npos && argument.substr(equals + 1).starts_with('[')) {
    return argument.substr(0, equals + 1) + kKeepWhole + argument.substr(equals + 1);
  }
  return argument;
}

std::string Unshielded(std::string value) {
  if (value.starts_with(kKeepWhole)) value.erase(0, 1);
  return value;
}

arrow::Status Usage(std::string message) { return MakeError({.code = Code::kInvalidArgument, .reason = "USAGE"}, std::move(message)); }

arrow::Status UnknownVerb(const std::string& word) {
  const auto names = VerbNames();
  return Usage(fmt::format("'{}' is no verb of headrace: there are {}{}", word, fmt::join(names, ", "), catalog::DidYouMean(word, names)));
}

/// What CLI11 fills for one verb.
struct Collected {
  std::vector<std::string> positionals;
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, std::vector<std::string>> flags;  // "true" for a bare one
  bool help = false;
  bool help_all = false;
};

void Declare(CLI::App& app, const VerbRow& row, Collected& collected) {
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", collected.help);
  app.add_flag("--help-all", collected.help_all);
  app.add_option("positionals", collected.positionals);
  for (const catalog::Option& option : catalog::Options()) {
    if ((option.verbs & row.bit) == 0 || (option.hidden && !kFailPointsCompiled)) continue;
    std::string name = catalog::CommandLineName(option.name);
    if (option.kind == catalog::OptionKind::kFlag) {
      app.add_flag(name, collected.flags[std::string(option.name)]);
    } else {
      app.add_option(name, collected.values[std::string(option.name)])->allow_extra_args(false);
    }
  }
}

arrow::Status RefuseExtra(const std::string& argument, const VerbRow& row) {
  std::string name = argument.substr(0, argument.find('='));
  if (row.bit == 0) return Usage(fmt::format("'{}' takes no options, '{}' was given", row.name, argument));
  if (!name.starts_with("--")) {
    const auto nearest = catalog::NearestOption(catalog::LibraryName(name), row.bit);
    return Usage(fmt::format("there is no option {}: options begin with two dashes{}; 'headrace {} --help-all' lists them", name,
                             nearest ? fmt::format(", did you mean {}?", catalog::CommandLineName(*nearest)) : "", row.name));
  }
  return catalog::RefuseOption(catalog::LibraryName(name), static_cast<catalog::OptionVerb>(row.bit));
}

arrow::Status CheckPositionals(const std::vector<std::string>& positionals, const VerbRow& row, bool may_lack) {
  if (positionals.size() < row.required && !may_lack) {
    std::vector<std::string_view> missing;
    for (const Positional& positional : row.positionals.first(row.required).subspan(positionals.size())) missing.push_back(positional.name);
    return Usage(
        fmt::format("'headrace {}' needs {}: 'headrace {} --help' shows an example", row.name, fmt::join(missing, " and "), row.name));
  }
  if (positionals.size() > row.positionals.size() && !row.any_number) {
    return Usage(fmt::format("'headrace {}' has no place for '{}' (a value with spaces and a pattern need quotes)", row.name,
                             positionals[row.positionals.size()]));
  }
  for (size_t i = 0; i < std::min(positionals.size(), row.positionals.size()); ++i) {
    const auto words = catalog::SplitWords(row.positionals[i].words);
    if (words.empty() || std::ranges::find(words, positionals[i]) != words.end()) continue;
    return Usage(fmt::format("'{}' is no {} of 'headrace {}': there are {}{}", positionals[i], row.positionals[i].name, row.name,
                             fmt::join(words, ", "), catalog::DidYouMean(positionals[i], words)));
  }
  return arrow::Status::OK();
}

/// Bare flags and those with a value, --quiet=false; the last word cannot be had by giving both.
arrow::Status TakeFlags(const Collected& collected, Arguments* arguments) {
  for (const auto& [name, given] : collected.flags) {
    for (const std::string& text : given) {
      ARROW_RETURN_NOT_OK(catalog::CheckValue(*catalog::FindOption(name), text));
      if (text == given.front()) continue;
      return InvalidOption(name, fmt::format("{} is given as true and as false: give it once", catalog::CommandLineName(name)));
    }
    if (given.empty()) continue;
    if (given.front() == "true") {
      arguments->options[name] = "true";
    } else {
      arguments->flags_off.push_back(name);
    }
  }
  return arrow::Status::OK();
}

arrow::Status TakeValues(const Collected& collected, Arguments* arguments) {
  for (const auto& [name, given] : collected.values) {
    if (given.empty()) continue;
    const catalog::Option& option = *catalog::FindOption(name);
    bool several = option.kind == catalog::OptionKind::kList || option.kind == catalog::OptionKind::kEach;
    if (given.size() > 1 && !several) {
      return InvalidOption(name, fmt::format("{} is given {} times: give it once", catalog::CommandLineName(name), given.size()));
    }
    std::string joined;
    for (size_t i = 0; i < given.size(); ++i) {
      if (i > 0) joined += option.kind == catalog::OptionKind::kEach ? '\n' : ',';  // also behind an empty one
      joined += Unshielded(given[i]);
    }
    ARROW_RETURN_NOT_OK(catalog::CheckValue(option, joined));
    arguments->options[name] = std::move(joined);
  }
  return arrow::Status::OK();
}

/// What says how options are had is no option of what is done.
void TakeConfigOptions(Arguments* arguments) {
  if (auto node = arguments->options.extract("config"); !node.empty()) arguments->config = std::move(node.mapped());
  arguments->print_config = !arguments->options.extract("print_config").empty();
}

arrow::Result<Arguments> ParseVerb(const VerbRow& row, const std::vector<std::string>& rest) {
  Collected collected;
  CLI::App app;
  Declare(app, row, collected);
  std::vector<std::string> reversed;  // CLI11 takes its arguments from the back
  for (const std::string& argument : rest) {
    if (argument.starts_with("--") && argument.ends_with('=')) {
      return InvalidOption(catalog::LibraryName(argument.substr(0, argument.size() - 1)),
                           fmt::format("'{}' has no value after '='", argument));
    }
    reversed.push_back(Shielded(argument));
  }
  std::ranges::reverse(reversed);
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (app.remaining().empty()) return Usage(fmt::format("{}; 'headrace {} --help' explains", error.what(), row.name));
  }
  Arguments arguments{.verb = row.verb, .help = collected.help, .help_all = collected.help_all};
  if (arguments.help || arguments.help_all) return arguments;
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with('-') && extra != "--") return RefuseExtra(extra, row);
  }
  for (std::string& positional : collected.positionals) arguments.positionals.push_back(Unshielded(std::move(positional)));
  ARROW_RETURN_NOT_OK(TakeFlags(collected, &arguments));
  ARROW_RETURN_NOT_OK(TakeValues(collected, &arguments));
  TakeConfigOptions(&arguments);
  ARROW_RETURN_NOT_OK(CheckPositionals(arguments.positionals, row, /*may_lack=*/arguments.print_config));
  return arguments;
}

}  // namespace

bool AsksForJson(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](std::string_view argument) { return argument == "--json" || argument == "--json=true"; });
}

bool WritesDataToOutput(const std::vector<std::string>& arguments) {
  // After the verb and something that may be the source.
  return arguments.size() > 2 && arguments.front() == "copy" && std::find(arguments.begin() + 2, arguments.end(), "-") != arguments.end();
}

arrow::Result<Arguments> ParseArguments(std::vector<std::string> arguments) {
  if (arguments.empty()) return Usage("a verb is missing: 'headrace --help' lists them");
  std::string first = arguments.front();
  arguments.erase(arguments.begin());
  if (first == "--version") return Arguments{.verb = Verb::kVersion};
  bool help_word = first == "help";
  if (first == "-h" || first == "--help" || first == "--help-all" || (help_word && arguments.empty())) return Arguments{.help = true};
  if (help_word) {
    first = arguments.front();
    arguments = {"--help"};
  }
  auto row = std::ranges::find(Verbs(), first, &VerbRow::name);
  if (row == Verbs().end()) return UnknownVerb(first);
  return ParseVerb(*row, arguments);
}

}  // namespace headrace::cli
