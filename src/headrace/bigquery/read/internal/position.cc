#include "headrace/bigquery/read/internal/position.h"

#include <charconv>

#include <fmt/format.h>

namespace headrace::bigquery {
namespace {

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text.front() != '-';
}

}  // namespace

std::string StreamPosition::ToString() const { return fraction > 0 ? fmt::format("{}@{:.6g}", rows, fraction) : fmt::format("{}", rows); }

arrow::Result<StreamPosition> ParseStreamPosition(std::string_view text) {
  StreamPosition position;
  if (text.empty()) return position;
  const size_t at = text.find('@');
  const bool good = ParseWhole(text.substr(0, at), &position.rows) &&
                    (at == std::string_view::npos ||
                     (ParseWhole(text.substr(at + 1), &position.fraction) && position.fraction >= 0 && position.fraction <= 1));
  if (!good) {
    return MakeError({.code = Code::kDataLoss, .service = "BigQuery Storage Read", .reason = "CORRUPT_STATE"},
                     fmt::format("the position of a read stream is corrupt: {} bytes that are not ROWS or ROWS@FRACTION", text.size()));
  }
  return position;
}

}  // namespace headrace::bigquery
