// From argv to a verb, its positional arguments and its options as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/catalog/option_table.h"

namespace headrace::cli {

enum class Verb { kCopy, kResume, kPlan, kSchema, kServe, kVersion };

struct Arguments {
  std::optional<Verb> verb{};  // none: help about the program
  std::vector<std::string> positionals{};
  catalog::OptionValues options{};
  bool help = false;
  bool help_all = false;
};

/// "copy" and so on.
std::string_view VerbName(Verb verb);
/// The bit of the option table; 0 for version, which takes no option.
unsigned VerbBit(Verb verb);

/// `arguments` without the program's name. Errors are usage errors: unknown verbs and options (with the nearest name), missing and
/// superfluous values, options given twice, a wrong number of positional arguments.
arrow::Result<Arguments> ParseArguments(std::vector<std::string> arguments);
/// Whether --json is among the arguments, for errors found before they could be parsed.
bool AsksForJson(const std::vector<std::string>& arguments);
/// Whether standard output will hold data, so that nothing else may be printed there; also for errors found before parsing.
bool WritesDataToOutput(const std::vector<std::string>& arguments);

}  // namespace headrace::cli
