// Completion scripts for shells, made from the tables of verbs and options: verbs, the options of each, known words, files and directories.
//
// The scripts are static: they do not call the program. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace headrace::cli {

/// Of "bash", "zsh" or "fish"; empty for another shell.
std::string CompletionScript(std::string_view shell);

}  // namespace headrace::cli
