// From argv to a verb, its positional arguments and its options as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/catalog/option_table.h"
#include "headrace/cli/verb_table.h"

namespace headrace::cli {

struct Arguments {
  std::optional<Verb> verb{};  // none: help about the program
  std::vector<std::string> positionals{};
  catalog::OptionValues options{};  // a flag that is off is not among them
  std::string config{};             // the file that --config names
  /// Flags that the command line turns off, like --quiet=false: they are off whatever the config file says.
  std::vector<std::string> flags_off{};
  bool print_config = false;
  bool help = false;
  bool help_all = false;
};

/// `arguments` without the program's name. Errors are usage errors: unknown verbs and options (with the nearest name), missing and
/// superfluous values, options given twice, a wrong number of positional arguments (with --print-config there may be too few). The file
/// that
/// --config names is not read here.
arrow::Result<Arguments> ParseArguments(std::vector<std::string> arguments);
/// Whether --json is among the arguments, for errors found before they could be parsed.
bool AsksForJson(const std::vector<std::string>& arguments);
/// Whether standard output will hold data, so that nothing else may be printed there; also for errors found before parsing.
bool WritesDataToOutput(const std::vector<std::string>& arguments);

}  // namespace headrace::cli
