#include "headrace/cli/verb_table.h"

#include <algorithm>
#include <iterator>

namespace headrace::cli {
namespace {

using enum catalog::PathHint;

constexpr Positional kSourceAndDestination[] = {{"SRC", kFile}, {"DST", kFile}};
constexpr Positional kSource[] = {{"SRC", kFile}};
constexpr Positional kCheckpoint[] = {{"DIR", kDirectory}};
constexpr Positional kShell[] = {{"SHELL", kNone, "bash zsh fish"}};

constexpr VerbRow kVerbs[] = {
    {Verb::kCopy, "copy", catalog::kCopy, kSourceAndDestination, 2, true, "SRC DST [options]", "copy a BigQuery table or files into files",
     "SRC is bq:project.dataset.table, files, a directory or - ; DST is a directory, a file or - .\n"
     "Formats: parquet, arrow, arrows, csv, ndjson, avro; by the name, or --from-format and --format.\n"
     "Each row once. Files appear complete or not at all; a directory is a result once it has a manifest.\n"
     "With --checkpoint it survives kill -9. Cost: the bytes of the columns read, billed by the service.",
     "headrace copy bq:bigquery-public-data.usa_names.usa_1910_current ./names/ \\\n"
     "      --row-restriction 'year > 1990' --billing-project my-project --checkpoint ./names.job"},
    {Verb::kResume, "resume", catalog::kResume, kCheckpoint, 1, false, "DIR [options]", "go on from a checkpoint directory",
     "DIR is what --checkpoint named. Source, destination and options come from there; only the options\n"
     "below may differ. Rows before the checkpoint are not read again. A finished job is left as it is.\n"
     "Cost: the bytes read from here on; the read session is the old one, as long as it has not expired.",
     "headrace resume ./names.job --readers 8"},
    {Verb::kPlan, "plan", catalog::kPlan, kSourceAndDestination, 1, false, "SRC [DST] [options]",
     "show what a copy would do, writing nothing",
     "Prints schema, streams, estimates and what is sent. Opens a read session, which is free; looks at\n"
     "every file of a source of files.",
     "headrace plan bq:bigquery-public-data.usa_names.usa_1910_current --selected-fields state,name \\\n"
     "      --billing-project my-project"},
    {Verb::kSchema, "schema", catalog::kSchema, kSource, 1, false, "SRC [options]", "print the columns of a table or of files",
     "SRC is bq:project.dataset.table (opens a read session, which is free), files, a directory or - .\n"
     "--json prints what bq load and the option --schema take.",
     "headrace schema bq:bigquery-public-data.usa_names.usa_1910_current \\\n"
     "      --billing-project my-project --json"},
    {Verb::kBench, "bench", catalog::kBench, kSource, 1, true, "SRC [options]",
     "read a table or files, drop the rows, and say how fast that was",
     "SRC is what copy takes. Rows are received, decoded and checked as by copy, then dropped; says how\n"
     "fast that was, what it cost this machine, and what limited it. Nothing is written.\n"
     "Cost: the bytes of the columns read until --duration is over, billed by the service.",
     "headrace bench bq:bigquery-public-data.usa_names.usa_1910_current --readers 4 \\\n"
     "      --billing-project my-project --duration 10s"},
    {Verb::kServe,
     "serve",
     catalog::kServeVerb,
     {},
     0,
     false,
     "[options]",
     "serve files as BigQuery tables on this machine",
     "BigQuery on loopback, with no account: REST for datasets, tables and rows, and the Storage Read API.\n"
     "Prints each address it serves and runs until SIGINT or SIGTERM. Tables are held in memory.",
     "headrace serve --load demo.nyc.flights=flights.parquet --grpc-port 9060 &\n"
     "  headrace copy bq:demo.nyc.flights ./flights/ --bigquery-storage-endpoint http://localhost:9060"},
    {Verb::kCompletion, "completion", 0, kShell, 1, false, "SHELL", "print what makes a shell complete headrace's command line",
     "SHELL is bash, zsh or fish. An installed headrace is completed without this. In a shell's start-up\n"
     "file: source <(headrace completion bash), the same with zsh, headrace completion fish | source.",
     "headrace completion bash"},
    {Verb::kMan,
     "man",
     0,
     {},
     0,
     false,
     "",
     "print the manual page",
     "The page is in the form that man reads. An installed headrace has it already: man headrace.",
     "headrace man > headrace.1"},
    {Verb::kVersion, "version", 0, {}, 0, false, "", "print the versions of the program and its libraries", "", "headrace version"},
};

}  // namespace

std::span<const VerbRow> Verbs() { return kVerbs; }

const VerbRow& RowOf(Verb verb) { return *std::ranges::find(kVerbs, verb, &VerbRow::verb); }

std::vector<std::string_view> VerbNames() {
  std::vector<std::string_view> names;
  for (const VerbRow& row : kVerbs) names.push_back(row.name);
  return names;
}

std::string_view VerbName(Verb verb) { return RowOf(verb).name; }
unsigned VerbBit(Verb verb) { return RowOf(verb).bit; }

std::vector<const catalog::Option*> OptionsOf(const VerbRow& row) {
  std::vector<const catalog::Option*> options;
  for (const catalog::Option& option : catalog::Options()) {
    if ((option.verbs & row.bit) != 0 && !option.hidden) options.push_back(&option);
  }
  return options;
}

}  // namespace headrace::cli
