// The two syntaxes of a config file, TOML and JSON, as one list of keys and values.
//
// Free functions, any thread. Errors are of usage, name line and column, and never repeat a value: it may be a secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"

namespace headrace::cli {

struct ConfigValue {
  enum class Kind {
    kText,
    kWholeNumber,
    kNumber,  // with a fraction or an exponent
    kBoolean,
    kTexts,  // an array of texts
    kOther,
  };
  Kind kind = Kind::kOther;
  std::string text{};                // of all but arrays: as the command line has it
  std::vector<std::string> items{};  // of an array
  std::string_view what{};           // for error texts: "a date"
};

struct ConfigEntry {
  std::string key{};
  size_t line = 0;
  ConfigValue value{};
};

/// In the order of the file. `text` must be UTF-8. A key that is repeated is an error in TOML and two entries in JSON.
arrow::Result<std::vector<ConfigEntry>> ParseTomlConfig(std::string_view text);
arrow::Result<std::vector<ConfigEntry>> ParseJsonConfig(std::string_view text);

/// `text` as a TOML string with its quotes. It must be UTF-8.
std::string TomlString(std::string_view text);

}  // namespace headrace::cli
