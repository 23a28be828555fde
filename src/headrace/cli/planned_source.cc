#include "headrace/cli/planned_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/types/type_table.h"

namespace headrace::cli {
namespace {

// Planning holds no rows; the budget is there because sources may ask for one.
constexpr int64_t kPlanMemory = int64_t{64} << 20;

std::string TypeText(const Field& field) {
  std::string name(TypeName(field.kind));
  if (field.precision > 0)
    name += field.scale > 0 ? fmt::format("({}, {})", field.precision, field.scale) : fmt::format("({})", field.precision);
  if (field.max_length > 0) name += fmt::format("({})", field.max_length);
  if (field.kind == TypeKind::kRange) name += fmt::format("<{}>", TypeName(field.range_element));
  return name;
}

std::string_view ModeText(Mode mode) {
  switch (mode) {
    case Mode::kNullable:
      return "nullable";
    case Mode::kRequired:
      return "required";
    case Mode::kRepeated:
      return "repeated";
  }
  return "";
}

using Row = std::array<std::string, 3>;

void AddRows(const std::vector<Field>& fields, size_t depth, std::vector<Row>* rows) {
  for (const Field& field : fields) {
    rows->push_back({std::string(2 * depth, ' ') + field.name, TypeText(field), std::string(ModeText(field.mode))});
    AddRows(field.fields, depth + 1, rows);
  }
}

/// Code points, for columns that line up with names in any script of single-width letters.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width) { return text + std::string(width - std::min(width, Width(text)), ' '); }

}  // namespace

arrow::Result<PlannedSource> PlanSource(Session session, const Source& source) {
  MetricRegistry metrics;
  MemoryBudget memory(kPlanMemory);
  JobContext context{.job_name = "headrace-plan", .logger = &session.console, .metrics = &metrics, .memory = &memory};
  ARROW_ASSIGN_OR_RAISE(auto enumerator, source.CreateEnumerator(context));
  session.signals.SetHandler([&enumerator](int) { enumerator->Cancel(); });
  arrow::Status started = enumerator->Start();
  session.signals.SetHandler(nullptr);
  ARROW_RETURN_NOT_OK(started);

  PlannedSource planned{.schema = enumerator->schema(), .estimated_rows = enumerator->estimated_rows(), .facts = enumerator->facts()};
  while (true) {
    ARROW_ASSIGN_OR_RAISE(NextSplit next, enumerator->Next());
    if (next.kind != NextSplit::Kind::kSplit) return planned;
    ++planned.streams;
    if (next.split.estimated_bytes >= 0) planned.estimated_bytes = std::max(planned.estimated_bytes, 0.0) + next.split.estimated_bytes;
  }
}

arrow::Result<std::string> SchemaText(const arrow::Schema& schema) {
  ARROW_ASSIGN_OR_RAISE(TableSchema table, FromArrowSchema(schema));
  std::vector<Row> rows = {{"column", "type", "mode"}};
  AddRows(table.fields, 0, &rows);
  size_t names = 0;
  size_t types = 0;
  for (const Row& row : rows) {
    names = std::max(names, Width(row[0]));
    types = std::max(types, Width(row[1]));
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{}{}  {}  {}", text.empty() ? "" : "\n", Padded(row[0], names), Padded(row[1], types), row[2]);
  }
  return text;
}

}  // namespace headrace::cli
