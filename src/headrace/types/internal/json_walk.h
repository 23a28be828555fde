// simdjson's on-demand parser with the checks that it leaves to its caller. Private to types/.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::internal {

/// A text in a buffer with the padding that simdjson reads beyond its end, and the parser over it. One thread; a document is valid until
/// the next Open.
class JsonDocument {
 public:
  arrow::Result<simdjson::ondemand::document*> Open(std::string_view text);
  /// The same for `[text]`: a scalar alone is no document that on-demand walks well.
  arrow::Result<simdjson::ondemand::document*> OpenInBrackets(std::string_view text);
  /// An error unless the document has been read to the end of the text.
  arrow::Status ExpectEnd();

 private:
  arrow::Result<simdjson::ondemand::document*> Iterate();

  std::string buffer_;
  size_t length_ = 0;
  simdjson::ondemand::parser parser_;
  simdjson::ondemand::document document_;
};

/// What simdjson says of the text.
arrow::Status JsonError(simdjson::error_code error);

/// The digits of a number as they are written; an error when the token is no JSON number.
arrow::Result<std::string_view> NumberToken(simdjson::ondemand::value& value);
arrow::Result<bool> BoolOf(simdjson::ondemand::value& value);
/// OK for the literal null.
arrow::Status TakeNull(simdjson::ondemand::value& value);

/// Reads a value of any kind to its end and checks all of it; at most `depth` levels.
arrow::Status WalkJson(simdjson::ondemand::value& value, int depth);

}  // namespace headrace::internal
