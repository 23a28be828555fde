// tabledata.list of the REST API.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headrace/local/read_schema.h"
#include "headrace/local/rest_api.h"
#include "headrace/local/rest_call.h"
#include "headrace/types/rest_row.h"
#include "headrace/types/type_table.h"

namespace headrace::local {
namespace {

// An answer ends with the row that brings it to this size; the service's own limit for one answer lies near it (quotas: "tabledata.list").
constexpr size_t kMostAnswerBytes = 10 << 20;
constexpr int64_t kRowsAtOnce = 64;

// Where a page begins and which version of the table it is of: what changes in between does not mix into the pages.
struct Position {
  uint64_t row = 0;
  uint64_t rows = 0;
  uint64_t schema = 0;
  uint64_t content = 0;
};

std::string FormatToken(const Position& at) { return fmt::format("{:x}-{:x}-{:x}-{:x}", at.row, at.rows, at.schema, at.content); }

std::optional<Position> ParseToken(std::string_view token) {
  Position at;
  std::array<uint64_t*, 4> numbers = {&at.row, &at.rows, &at.schema, &at.content};
  const char* next = token.data();
  const char* end = token.data() + token.size();
  for (uint64_t* number : numbers) {
    if (number != numbers[0] && (next == end || *next++ != '-')) return std::nullopt;
    auto [stop, error] = std::from_chars(next, end, *number, 16);
    if (error != std::errc()) return std::nullopt;
    next = stop;
  }
  return next == end ? std::optional(at) : std::nullopt;
}

std::vector<std::string> SplitNames(const std::string& list) {
  std::vector<std::string> names;
  for (size_t start = 0; start < list.size();) {
    size_t comma = std::min(list.find(',', start), list.size());
    if (comma > start) names.push_back(list.substr(start, comma - start));
    start = comma + 1;
  }
  return names;
}

arrow::Result<TextForm> FormOf(const RestApi::Call& call) {
  ARROW_ASSIGN_OR_RAISE(bool micros, call.Flag("formatOptions.useInt64Timestamp"));
  std::string format = call.Parameter("formatOptions.timestampOutputFormat");
  if (format == "INT64" || (micros && format != "FLOAT64")) return TextForm::kRestMicros;
  if (format.empty() || format == "FLOAT64" || format == "TIMESTAMP_OUTPUT_FORMAT_UNSPECIFIED") return TextForm::kRest;
  if (format == "ISO8601_STRING") return NotServed("timestampOutputFormat ISO8601_STRING");
  return BadRequest(fmt::format("Invalid value for formatOptions.timestampOutputFormat: {}", format));
}

// Appends rows of `columns` from `row` on until `last` or the answer is large; answers the row after them.
arrow::Result<int64_t> AppendRows(const RowBatches& rows, int64_t row, int64_t last, TextForm form, std::string* body) {
  ARROW_ASSIGN_OR_RAISE(auto writer, RestRowWriter::Make(rows.schema, form));
  bool first = true;
  while (row < last && body->size() < kMostAnswerBytes) {
    auto part = rows.Slice(row, std::min(kRowsAtOnce, last - row));
    if (!first) body->push_back(',');
    ARROW_RETURN_NOT_OK(writer->Append(*part, 0, part->num_rows(), body, row));
    row += part->num_rows();
    first = false;
  }
  return row;
}

}  // namespace

RestApi::Answered RestApi::ListRows(const Call& call) {
  TableName name = call.Table();
  ARROW_ASSIGN_OR_RAISE(TableInfo table, tables_->GetTable(name));
  if (table.view) return BadRequest("Cannot list a table of type VIEW.");
  ARROW_ASSIGN_OR_RAISE(auto most, call.Number("maxResults"));
  ARROW_ASSIGN_OR_RAISE(auto start, call.Number("startIndex"));
  ARROW_ASSIGN_OR_RAISE(TextForm form, FormOf(call));
  std::shared_ptr<const StoredTable> version = table.content;
  uint64_t row = start.value_or(0);
  if (std::string token = call.Parameter("pageToken"); !token.empty()) {
    auto at = ParseToken(token);
    version = at ? tables_->FindVersion(name, at->schema, at->content, static_cast<int64_t>(at->rows)) : nullptr;
    if (version == nullptr) return BadRequest(fmt::format("Invalid page token {}", token));
    row = at->row;
  }
  ARROW_ASSIGN_OR_RAISE(TableSchema selected, SelectFields(version->schema, SplitNames(call.Parameter("selectedFields"))));
  ARROW_ASSIGN_OR_RAISE(auto columns, ToArrowSchema(selected));
  ARROW_ASSIGN_OR_RAISE(RowBatches rows, version->rows.Reshape(columns));
  auto total = static_cast<uint64_t>(rows.rows);
  row = std::min(row, total);
  uint64_t last = most && *most > 0 ? row + std::min(*most, total - row) : total;

  std::string body = fmt::format(R"({{"kind":"bigquery#tableDataList","etag":"{}","totalRows":"{}")", table.etag, total);
  if (row < last) {
    body += ",\"rows\":[";
    ARROW_ASSIGN_OR_RAISE(int64_t after, AppendRows(rows, static_cast<int64_t>(row), static_cast<int64_t>(last), form, &body));
    body += "]";
    row = static_cast<uint64_t>(after);
  }
  if (row < total) {
    Position next{row, total, version->schema_checksum, version->content_checksum};
    body += fmt::format(R"(,"pageToken":"{}")", FormatToken(next));
  }
  body += "}";
  return RestAnswer{.status = 200, .body = std::move(body), .etag = table.etag};
}

}  // namespace headrace::local
