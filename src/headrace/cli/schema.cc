#include <fmt/format.h>

#include "headrace/catalog/make.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/planned_source.h"
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
  auto prepared = [&]() -> arrow::Result<std::shared_ptr<const Source>> {
    ARROW_ASSIGN_OR_RAISE(Request request, ReadRequest(session.arguments));
    ARROW_RETURN_NOT_OK(AnnounceEndpoint(session.console, request.source, request.values));
    return catalog::MakeSource(request.source, request.values);
  }();
  if (!prepared.ok()) return Fail(session.console, prepared.status());

  auto shown = [&]() -> arrow::Result<std::string> {
    ARROW_ASSIGN_OR_RAISE(auto planned, PlanSource(session, **prepared));
    return Shown(*planned.schema, values);
  }();
  if (!shown.ok()) return Fail(session.console, shown.status());
  session.console.Result(*shown);
  return kExitDone;
}

}  // namespace headrace::cli
