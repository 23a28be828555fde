#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/catalog/make.h"
#include "headrace/catalog/option_value.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/planned_source.h"
#include "headrace/cli/report_text.h"
#include "headrace/cli/text.h"
#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBilling =
    "billed by the service per byte of the columns read, before compression; a row restriction can lower it, a failed read counts what was "
    "sent";

constexpr double kTib = 1099511627776.0;

struct Parts {
  Request request;
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Sink> sink;     // null without a destination
  std::optional<double> price_per_tib;  // in whatever currency
};

arrow::Result<std::optional<double>> PricePerTib(const catalog::OptionValues& values) {
  const auto given = values.find("price_per_tib");
  if (given == values.end()) return std::nullopt;
  ARROW_ASSIGN_OR_RAISE(const double price, catalog::ParseNumber("price_per_tib", given->second));
  if (price < 0) return InvalidOption("price_per_tib", fmt::format("price_per_tib is {}; give 0 or more", given->second));
  return price;
}

arrow::Result<Parts> Prepare(const Arguments& arguments) {
  Parts parts;
  ARROW_ASSIGN_OR_RAISE(parts.request, ReadRequest(arguments));
  ARROW_ASSIGN_OR_RAISE(parts.price_per_tib, PricePerTib(parts.request.values));
  ARROW_ASSIGN_OR_RAISE(parts.source, catalog::MakeSource(parts.request.source, parts.request.values));
  if (parts.request.destination) {
    ARROW_ASSIGN_OR_RAISE(parts.sink, catalog::MakeSink(*parts.request.destination, parts.request.values));
    ARROW_RETURN_NOT_OK(parts.sink->Check(SinkContext{}));
  }
  return parts;
}

/// The options that go to the service or shape the result: everything that was set but what concerns only the program's output.
std::vector<std::pair<std::string, std::string>> Sent(const catalog::OptionValues& values) {
  std::vector<std::pair<std::string, std::string>> sent;
  for (const auto& [name, text] : values) {
    if (catalog::FindOption(name)->places != catalog::kOutput) sent.emplace_back(name, text);
  }
  return sent;
}

bool ReadsBigQuery(const Parts& parts) { return parts.request.source.kind == catalog::AddressKind::kBigQuery; }

/// Of all the bytes that the service estimates, without any part that may be free; nothing where price or bytes are not known.
std::optional<double> Price(const Parts& parts, const PlannedSource& planned) {
  if (!parts.price_per_tib || planned.estimated_bytes < 0) return std::nullopt;
  return planned.estimated_bytes / kTib * *parts.price_per_tib;
}

std::string PriceText(const Parts& parts, const PlannedSource& planned) {
  if (!parts.price_per_tib) return "not known here: give your price of a TiB read, --price-per-tib N";
  const auto price = Price(parts, planned);
  if (!price) return "unknown, as the bytes are";
  const std::string amount = *price > 0 && *price < 0.01 ? "less than 0.01" : fmt::format("{:.2f}", *price);
  return fmt::format("{} at {} per TiB, if no part of it is free", amount, *parts.price_per_tib);
}

std::string DestinationText(const Parts& parts) {
  const auto& destination = parts.request.destination;
  return destination ? catalog::Absolute(*destination, catalog::AddressRole::kDestination).text : "not given";
}

std::string PlanText(const Parts& parts, const PlannedSource& planned, const std::string& schema, const catalog::OptionValues& values) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"source", parts.request.source.text},
      {"destination", DestinationText(parts)},
      {"columns", fmt::format("{}", planned.schema->num_fields())},
      {ReadsBigQuery(parts) ? "streams" : "splits", WithCommas(planned.streams)},
      {"estimated rows", planned.estimated_rows < 0 ? "unknown" : WithCommas(planned.estimated_rows)},
      {"estimated bytes", planned.estimated_bytes < 0 ? "unknown" : HumanBytes(planned.estimated_bytes)},
  };
  if (ReadsBigQuery(parts)) {
    rows.emplace_back("estimated price", PriceText(parts, planned));
    rows.emplace_back("cost", std::string(kBilling));
  }
  for (const auto& [name, value] : planned.facts) rows.emplace_back(name, value);
  for (auto& [name, value] : Sent(values)) rows.emplace_back(catalog::CommandLineName(name), value);
  std::string_view done = ReadsBigQuery(parts) ? "A read session was opened, which is free; no row was read." : "Nothing was written.";
  return fmt::format("{}\n\n{}\n\n{}", Aligned(rows), schema, done);
}

std::string PlanJson(const Parts& parts, const PlannedSource& planned, const TableSchema& schema, const catalog::OptionValues& values) {
  Json json = {{"source", parts.request.source.text}};
  if (parts.request.destination) json["destination"] = DestinationText(parts);
  json[ReadsBigQuery(parts) ? "streams" : "splits"] = planned.streams;
  json["estimated_rows"] = planned.estimated_rows < 0 ? Json() : Json(planned.estimated_rows);
  json["estimated_bytes"] = planned.estimated_bytes < 0 ? Json() : Json(static_cast<int64_t>(planned.estimated_bytes));
  if (ReadsBigQuery(parts)) {
    const auto price = Price(parts, planned);
    json["estimated_price"] = price ? Json(*price) : Json();
    json["cost"] = kBilling;
  }
  json["options"] = Json::object();
  for (auto& [name, value] : Sent(values)) json["options"][name] = value;
  json["facts"] = planned.facts;
  json["schema"] = Json::parse(SchemaToJson(schema), nullptr, false);
  const Lineage destinations = parts.sink ? parts.sink->lineage() : Lineage{};
  json["lineage"] = Json::parse(LineageJson(parts.source->lineage(), parts.sink ? &destinations : nullptr), nullptr, false);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int Plan(Session session) {
  const catalog::OptionValues& values = session.arguments.options;
  auto parts = Prepare(session.arguments);
  if (!parts.ok()) return Fail(session.console, parts.status());
  if (auto status = AnnounceEndpoint(session.console, parts->request.source, values); !status.ok()) {
    return Fail(session.console, status);
  }
  auto planned = PlanSource(session, *parts->source);
  if (!planned.ok()) return Fail(session.console, planned.status());
  auto table = FromArrowSchema(*planned->schema);
  auto schema = SchemaText(*planned->schema);
  if (!table.ok()) return Fail(session.console, table.status());
  if (!schema.ok()) return Fail(session.console, schema.status());
  session.console.Result(session.console.json() ? PlanJson(*parts, *planned, *table, values) : PlanText(*parts, *planned, *schema, values));
  return kExitDone;
}

}  // namespace headrace::cli
