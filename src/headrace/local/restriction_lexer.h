// Splits a row restriction into tokens. Free function, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"

namespace headrace::local {

struct Token {
  enum class Kind { kWord, kQuotedName, kInteger, kFloat, kString, kBytes, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string text{};  // a string without its escapes, a name without its quotes, else as written
  size_t offset = 0;
};

/// The last token is kEnd. INVALID_ARGUMENT that names the position of what cannot be a token.
arrow::Result<std::vector<Token>> LexRestriction(std::string_view text);

/// INVALID_ARGUMENT in the shape of the service's own: "request failed: row restriction is invalid: `message` at [1:5]".
arrow::Status RestrictionError(std::string_view text, size_t offset, std::string_view message);

}  // namespace headrace::local
