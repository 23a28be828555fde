#include <fmt/format.h>

#include "headrace/catalog/make.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/planned_source.h"
#include "headrace/files/read_table.h"
#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace::cli {
namespace {

arrow::Result<std::string> Shown(const arrow::Schema& schema, const catalog::OptionValues& values) {
  if (values.contains("arrow")) return schema.ToString();
  if (!values.contains("json")) return SchemaText(schema);
  ARROW_ASSIGN_OR_RAISE(TableSchema table, FromArrowSchema(schema));
  return SchemaToJson(table, 2);
}

}  // namespace

int Schema(Session session) {
  const catalog::OptionValues& values = session.arguments.options;
  std::shared_ptr<const Source> source;
  auto address = catalog::ParseAddress(session.arguments.positionals[0], catalog::AddressRole::kDescribed);
  if (!address.ok()) return Refuse(session.console, address.status());
  auto prepared = [&]() -> arrow::Status {
    if (values.contains("arrow") && values.contains("json")) return InvalidOption("arrow", "give --arrow or --json, not both");
    ARROW_RETURN_NOT_OK(catalog::CheckOptions(catalog::kSchema, *address, std::nullopt, values));
    if (address->kind != catalog::AddressKind::kBigQuery) return arrow::Status::OK();
    ARROW_ASSIGN_OR_RAISE(source, catalog::MakeSource(*address, values));
    return AnnounceEndpoint(session.console, values);
  }();
  if (!prepared.ok()) return Refuse(session.console, prepared);

  auto shown = [&]() -> arrow::Result<std::string> {
    if (source == nullptr) {
      ARROW_ASSIGN_OR_RAISE(auto schema, ReadTableSchema(LocalFileSystem(), address->target));
      return Shown(*schema, values);
    }
    ARROW_ASSIGN_OR_RAISE(auto planned, PlanSource(session, *source));
    return Shown(*planned.schema, values);
  }();
  if (!shown.ok()) return Fail(session.console, shown.status());
  session.console.Result(*shown);
  return kExitDone;
}

}  // namespace headrace::cli
