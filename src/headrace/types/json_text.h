// JSON as text: strings, and whether a text is one JSON value.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

/// Arrays and objects inside each other that a value of type JSON may have
/// (https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#json_type).
inline constexpr int kMaxJsonNesting = 500;

/// `text`, which must be UTF-8, as a JSON string with its quotes; only what must be escaped is.
void AppendJsonString(std::string_view text, std::string* out);

/// Whether `token` is a JSON number: its grammar, whatever its size.
bool IsJsonNumber(std::string_view token);

/// Says whether texts are JSON values; keeps its buffers. One thread.
class JsonChecker {
 public:
  JsonChecker();
  ~JsonChecker();
  JsonChecker(JsonChecker&&) noexcept;
  JsonChecker& operator=(JsonChecker&&) noexcept;

  /// OK for exactly one JSON value (RFC 8259) of any kind, nested to kMaxJsonNesting; numbers of any size, keys may repeat.
  arrow::Status Check(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
