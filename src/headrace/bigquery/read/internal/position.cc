#include "headrace/bigquery/read/internal/position.h"

#include <charconv>

#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text.front() >= '0' && text.front() <= '9';
}

/// "LOW" or "LOW..HIGH".
bool ParseFractions(std::string_view text, StreamPosition* position) {
  const size_t dots = text.find("..");
  if (!ParseWhole(text.substr(0, dots), &position->low) || !(position->low >= 0 && position->low <= 1)) return false;
  if (dots == std::string_view::npos) return true;
  return ParseWhole(text.substr(dots + 2), &position->high) && position->high >= position->low && position->high <= 1;
}

}  // namespace

std::string StreamPosition::ToString() const {
  // Fractions in the shortest form that reads back as the same number.
  if (high >= 0) return fmt::format("{}@{}..{}", rows, low, high);
  return low > 0 ? fmt::format("{}@{}", rows, low) : fmt::format("{}", rows);
}

arrow::Result<StreamPosition> ParseStreamPosition(std::string_view text) {
  StreamPosition position;
  if (text.empty()) return StreamPosition{.high = 0};
  const size_t at = text.find('@');
  const bool good =
      ParseWhole(text.substr(0, at), &position.rows) && (at == std::string_view::npos || ParseFractions(text.substr(at + 1), &position));
  if (!good) {
    return MakeError(
        {.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_STATE"},
        fmt::format("the position of a read stream is corrupt: {} bytes that are not ROWS, ROWS@LOW or ROWS@LOW..HIGH", text.size()));
  }
  if (position.rows == 0) position.low = position.high = 0;
  return position;
}

}  // namespace headrace::bigquery
