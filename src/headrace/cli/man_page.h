// The manual page headrace.1, made from the tables of verbs, options and exit codes.
//
// Free function, any thread.
#pragma once

#include <string>

namespace headrace::cli {

/// In the form that man and groff read (the macros of man(7)). It has no date: the same build makes the same page.
std::string ManualPage();

}  // namespace headrace::cli
