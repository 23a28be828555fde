// The narrowest type that every text of a column has. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/types/schema.h"

namespace headrace {

class TypeGuess {
 public:
  /// A value that is not null; `row` and `where` (file and line) are for the error of Finish.
  void Add(std::string_view text, int64_t row, const std::string& path, int64_t line);

  /// INT64, FLOAT64, BOOL, DATE, TIME, DATETIME (dates alone among them too), TIMESTAMP (with an offset or Z), else STRING; STRING without
  /// any value, and for numbers with a zero or a plus sign in front. Numbers that are no INT64 and would lose digits as FLOAT64 are an
  /// error that names the first of them.
  arrow::Result<TypeKind> Finish(const std::string& column) const;

 private:
  /// Whether the text is a value of the type.
  static bool Is(TypeKind kind, std::string_view text);

  uint32_t possible_ = ~uint32_t{0};  // bit i: kCandidates[i]
  bool any_ = false;
  // The first number that FLOAT64 does not hold.
  std::string lost_text_{};
  int64_t lost_row_ = 0;
  std::string lost_path_{};
  int64_t lost_line_ = 0;
};

}  // namespace headrace
