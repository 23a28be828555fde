// What `headrace --help` and `headrace VERB --help` print, made from the option table.
#pragma once

#include <string>

#include "headrace/cli/arguments.h"

namespace headrace::cli {

/// The program's overview: verbs, exit codes, one example.
std::string ProgramHelp();
/// One screen (at most 40 lines of 100 columns) with the verb's common options; with `all`, every option of the verb.
std::string VerbHelp(Verb verb, bool all);

}  // namespace headrace::cli
