// The one table of verbs: the command line is parsed by it, and help, completion and the manual page are made from it.
//
// Plain constant data; any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "headrace/catalog/option_table.h"

namespace headrace::cli {

enum class Verb { kCopy, kResume, kPlan, kSchema, kBench, kServe, kCompletion, kMan, kVersion };

/// What stands behind the verb and is no option.
struct Positional {
  std::string_view name;
  catalog::PathHint path = catalog::PathHint::kNone;
  std::string_view words{};  // the only ones, between spaces; empty: anything
};

struct VerbRow {
  Verb verb;
  std::string_view name;
  unsigned bit;  // of the option table; 0 for a verb without options
  std::span<const Positional> positionals;
  size_t required;           // positionals
  bool any_number;           // of the first positional, as of files that a shell made of a pattern
  std::string_view usage;    // behind "headrace NAME"
  std::string_view summary;  // one line
  std::string_view about;    // guarantee and cost
  std::string_view example;
};

/// In the order of the overview.
std::span<const VerbRow> Verbs();
const VerbRow& RowOf(Verb verb);
std::vector<std::string_view> VerbNames();

/// "copy" and so on.
std::string_view VerbName(Verb verb);
/// The bit of the option table; 0 for verbs that take no option.
unsigned VerbBit(Verb verb);
/// The options that the verb takes and that are no secret of our own tests, in the order of the manual.
std::vector<const catalog::Option*> OptionsOf(const VerbRow& row);

}  // namespace headrace::cli
