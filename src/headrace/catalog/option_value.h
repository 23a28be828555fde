// From the text of an option to its value. Every error names the option, the text and what is accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/catalog/option_table.h"

namespace headrace::catalog {

arrow::Result<int64_t> ParseInteger(std::string_view option, std::string_view text);
arrow::Result<int64_t> ParseBytes(std::string_view option, std::string_view text);
arrow::Result<std::chrono::milliseconds> ParseDuration(std::string_view option, std::string_view text);
arrow::Result<double> ParseNumber(std::string_view option, std::string_view text);
/// true / false.
arrow::Result<bool> ParseFlag(std::string_view option, std::string_view text);
/// Items between commas, as they are: an empty text is no item, and blank items are the option's own to refuse.
std::vector<std::string> ParseList(std::string_view text);
/// Parses `text` as the option's kind, or looks it up among its words, and drops the value: what can be wrong without knowing the option's
/// own rules. A word that is none of them is answered with the nearest one.
arrow::Status CheckValue(const Option& option, std::string_view text);

}  // namespace headrace::catalog
