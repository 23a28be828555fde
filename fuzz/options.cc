// Command lines, addresses, option values, table names, and configurations as a checkpoint keeps them.
//
// An input is a command line, one argument a line.
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "headrace/bigquery/table_name.h"
#include "headrace/catalog/address.h"
#include "headrace/catalog/make.h"
#include "headrace/catalog/option_value.h"
#include "headrace/cli/arguments.h"

namespace headrace::fuzz {
namespace {

std::vector<std::string> Lines(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    lines.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return lines;
}

// What is accepted is kept by a checkpoint and must come back as it was.
void KeepAndReadAgain(const catalog::Address& source, const catalog::Address& destination, const catalog::OptionValues& values) {
  const auto kept = catalog::ToMap({.source = catalog::Absolute(source, catalog::AddressRole::kSource),
                                    .destination = catalog::Absolute(destination, catalog::AddressRole::kDestination),
                                    .values = values});
  const auto again = catalog::FromMap(kept);
  if (!again.ok() || catalog::ToMap(*again) != kept) __builtin_trap();
}

void UseCommand(const std::vector<std::string>& lines) {
  auto arguments = cli::ParseArguments(lines);
  if (!arguments.ok() || arguments->verb != cli::Verb::kCopy || arguments->positionals.size() < 2) return;
  auto source = catalog::ParseSources({arguments->positionals.begin(), arguments->positionals.end() - 1});
  auto destination = catalog::ParseAddress(arguments->positionals.back(), catalog::AddressRole::kDestination);
  if (!source.ok() || !destination.ok()) return;
  if (!catalog::CheckOptions(catalog::kCopy, *source, *destination, arguments->options).ok()) return;
  (void)catalog::MakeSource(*source, arguments->options);
  (void)catalog::MakeSink(*destination, arguments->options);
  if (!catalog::MakeJobOptions(*source, *destination, arguments->options).ok()) return;
  KeepAndReadAgain(*source, *destination, arguments->options);
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  const auto lines = Lines(bytes);
  UseCommand(lines);
  for (const auto& line : lines) {
    for (const auto& option : catalog::Options()) (void)catalog::CheckValue(option, line);
    (void)bigquery::ParseTableName(line, "project");
  }
  std::map<std::string, std::string> kept;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) kept[lines[i]] = lines[i + 1];
  (void)catalog::FromMap(kept);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "copy\nbq:my-project.sales.orders\n./orders/\n--checkpoint\n./orders.job\n--selected-fields\nid,amount",
      "copy\nbq:a:b.c\n./x.parquet\n--overwrite\n--credentials=none\n--max-bytes-per-batch=8MiB\n--snapshot-time=2024-05-01T10:00:00Z",
      "copy\na.csv\nb/*.csv\nout/\n--from-format=csv\n--format=ndjson\n--csv-null-values=NULL,-",
      "resume\n./orders.job\n--readers\n4",
      "plan\nbq:p.d.t\n--json",
      "serve\n--load\np.d.t=./flights.csv\n--port\n0",
  };
  // Every option once, with its example.
  for (const auto& option : catalog::Options()) {
    std::string line = "copy\nbq:p.d.t\n./out/\n" + catalog::CommandLineName(option.name);
    if (option.kind != catalog::OptionKind::kFlag) line += "\n" + std::string(option.example);
    seeds.push_back(std::move(line));
  }
  return seeds;
}

}  // namespace headrace::fuzz
