#include "headrace/cli/report_text.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/cli/text.h"

namespace headrace::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Lineage& lineage) {
  Json list = Json::array();
  for (const Dataset& dataset : lineage.datasets) {
    Json entry = {{"namespace", dataset.namespace_name}, {"name", dataset.name}};
    if (!dataset.facets.empty()) entry["facets"] = dataset.facets;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string_view BoundednessName(Boundedness boundedness) { return boundedness == Boundedness::kBounded ? "bounded" : "continuous"; }

Json LineageOf(const Lineage& source, const Lineage* sink) {
  Json json = {{"sources", ToJson(source)}};
  if (sink != nullptr) json["destinations"] = ToJson(*sink);
  json["boundedness"] = BoundednessName(source.boundedness);
  return json;
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Calls that were made again, "3 (DEADLINE_EXCEEDED 1, UNAVAILABLE 2)"; nothing for none.
std::string RetriesText(const std::map<std::string, int64_t>& counters) {
  constexpr std::string_view kRetries = "readRetries";
  int64_t total = 0;
  std::string codes;
  for (const auto& [name, value] : counters) {
    if (value == 0 || !name.starts_with(kRetries)) continue;
    if (name == kRetries) {
      total = value;
    } else if (name[kRetries.size()] == '.') {
      codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", name.substr(kRetries.size() + 1), WithCommas(value));
    }
  }
  return total == 0 ? "" : WithCommas(total) + (codes.empty() ? "" : fmt::format(" ({})", codes));
}

std::string_view Outcome(const JobResult& result) {
  if (result.end == JobEnd::kStoppedAtCheckpoint) return "stopped";
  return result.report.rows_rejected > 0 ? "done_with_rejects" : "done";
}

}  // namespace

std::string ReportText(const JobResult& result) {
  const Report& report = result.report;
  bool stopped = result.end == JobEnd::kStoppedAtCheckpoint;
  double rate = report.seconds > 0 ? static_cast<double>(report.bytes_in_memory) / report.seconds : 0;
  std::vector<std::pair<std::string, std::string>> rows = {
      {stopped ? "stopped after" : "copied", Counted(report.rows_written, "row")},
      {"received", fmt::format("{} ({} as columns)", HumanBytes(static_cast<double>(report.bytes_read)),
                               HumanBytes(static_cast<double>(report.bytes_in_memory)))},
      {"written", HumanBytes(static_cast<double>(report.bytes_written))},
      {"time",
       fmt::format("{}{}", HumanSeconds(report.seconds), report.resumed ? " in this run" : fmt::format(", {}/s", HumanBytes(rate)))},
      {"streams", WithCommas(report.splits)},
      {"memory", fmt::format("{} at most, {} of it in rows", HumanBytes(static_cast<double>(report.peak_resident_bytes)),
                             HumanBytes(static_cast<double>(report.peak_budget_bytes)))},
  };
  // What differs only where rows did not simply pass through.
  if (report.rows_read != report.rows_written) rows.emplace_back("read", Counted(report.rows_read, "row"));
  if (report.records_in != report.rows_read) rows.emplace_back("into the sink", Counted(report.records_in, "record"));
  if (report.rows_rejected > 0) rows.emplace_back("rejected", Counted(report.rows_rejected, "row"));
  if (report.rows_skipped > 0) rows.emplace_back("skipped", Counted(report.rows_skipped, "row"));
  if (report.cuts > 0) rows.emplace_back("cuts", WithCommas(report.cuts));
  if (auto retries = RetriesText(report.counters); !retries.empty()) rows.emplace_back("retries", std::move(retries));
  if (report.checkpoints > 1) rows.emplace_back("checkpoints", fmt::format("{}", report.checkpoints));
  if (report.restarts > 0) rows.emplace_back("restarts", fmt::format("{}", report.restarts));
  for (const auto& [name, value] : report.facts) rows.emplace_back(name, value);
  for (const std::string& warning : report.warnings) rows.emplace_back("warning", warning);
  return Aligned(rows);
}

std::string ReportJson(const JobResult& result, const Lineage& source, const Lineage& sink, std::string_view resume_command) {
  Json json = {{"outcome", Outcome(result)}};
  Json report = Json::parse(result.report.ToJson(), nullptr, /*allow_exceptions=*/false);
  if (report.is_object()) json.update(report);
  json["lineage"] = LineageOf(source, &sink);
  if (!resume_command.empty()) json["resume_command"] = std::string(resume_command);
  return Dump(json);
}

std::string LineageJson(const Lineage& source, const Lineage* sink) { return Dump(LineageOf(source, sink)); }

}  // namespace headrace::cli
