// Options from a file, --config FILE, and into one, --print-config.
//
// Keys are the options' names as on the command line without the dashes, with '-' or '_'. Values are strings, whole numbers, booleans, and
// arrays of strings for options that take several. A config file is taken as if its options had been given on the command line before those
// that really were: relative paths in it start from the working directory. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/cli/arguments.h"

namespace headrace::cli {

/// Adds the options of the file that `arguments` names, if it names one, to those of the command line, which win. Errors are of usage and
/// name the file, the line and the key.
arrow::Status ApplyConfig(FileSystem* files, Arguments* arguments);
/// The same for the content of that file, which is JSON unless the name ends in .toml.
arrow::Status ApplyConfigText(std::string_view content, Arguments* arguments);

/// The options of a verb as a TOML file that ApplyConfig reads back to the same: those in `values` as they are, all others as comments with
/// their default. Text that is no UTF-8 is an error, since no config file can hold it.
arrow::Result<std::string> ConfigText(const VerbRow& row, const catalog::OptionValues& values);

}  // namespace headrace::cli
