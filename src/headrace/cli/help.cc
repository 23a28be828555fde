#include "headrace/cli/help.h"

#include <algorithm>

#include <fmt/format.h>

#include "headrace/cli/version.h"

namespace headrace::cli {
namespace {

struct VerbText {
  Verb verb;
  std::string_view usage;
  std::string_view summary;  // one line, also in the overview
  std::string_view about;    // guarantee and cost
  std::string_view example;
};

constexpr VerbText kTexts[] = {
    {Verb::kCopy, "headrace copy SRC DST [options]", "copy a BigQuery table or files into files",
     "SRC is bq:project.dataset.table, files, a directory or - ; DST is a directory, a file or - .\n"
     "Formats: parquet, arrow, arrows, csv, ndjson, avro; by the name, or --from-format and --format.\n"
     "Each row once. Files appear complete or not at all; a directory is a result once it has a manifest.\n"
     "With --checkpoint it survives kill -9. Cost: the bytes of the columns read, billed by the service.",
     "headrace copy bq:bigquery-public-data.usa_names.usa_1910_current ./names/ \\\n"
     "      --row-restriction 'year > 1990' --billing-project my-project --checkpoint ./names.job"},
    {Verb::kResume, "headrace resume DIR [options]", "go on from a checkpoint directory",
     "DIR is what --checkpoint named. Source, destination and options come from there; only the options\n"
     "below may differ. Rows before the checkpoint are not read again. A finished job is left as it is.\n"
     "Cost: the bytes read from here on; the read session is the old one, as long as it has not expired.",
     "headrace resume ./names.job --readers 8"},
    {Verb::kPlan, "headrace plan SRC [DST] [options]", "show what a copy would do, writing nothing",
     "Prints schema, streams, estimates and what is sent. Opens a read session, which is free; looks at\n"
     "every file of a source of files.",
     "headrace plan bq:bigquery-public-data.usa_names.usa_1910_current --selected-fields state,name \\\n"
     "      --billing-project my-project"},
    {Verb::kSchema, "headrace schema SRC [options]", "print the columns of a table or of files",
     "SRC is bq:project.dataset.table (opens a read session, which is free), files, a directory or - .\n"
     "--json prints what bq load and the option --schema take.",
     "headrace schema bq:bigquery-public-data.usa_names.usa_1910_current \\\n"
     "      --billing-project my-project --json"},
    {Verb::kServe, "headrace serve [options]", "serve files as BigQuery tables on this machine",
     "BigQuery on loopback, with no account: REST for datasets, tables and rows, and the Storage Read API.\n"
     "Prints each address it serves and runs until SIGINT or SIGTERM. Tables are held in memory.",
     "headrace serve --load demo.nyc.flights=flights.parquet --grpc-port 9060 &\n"
     "  headrace copy bq:demo.nyc.flights ./flights/ --bigquery-storage-endpoint http://localhost:9060"},
    {Verb::kVersion, "headrace version", "print the versions of the program and its libraries", "", "headrace version"},
};

const VerbText& TextOf(Verb verb) { return *std::ranges::find(kTexts, verb, &VerbText::verb); }

std::string Left(const catalog::Option& option) {
  std::string_view value = catalog::ValueName(option);
  return fmt::format("{}{}{}", catalog::CommandLineName(option.name), value.empty() ? "" : " ", value);
}

std::string OptionLines(unsigned verb, bool all, bool* hidden_some) {
  size_t width = 0;
  for (const catalog::Option& option : catalog::Options()) {
    if ((option.verbs & verb) != 0 && !option.hidden && (all || option.common)) width = std::max(width, Left(option).size());
  }
  std::string text;
  std::string_view group;
  for (const catalog::Option& option : catalog::Options()) {
    if ((option.verbs & verb) == 0 || option.hidden) continue;
    if (!all && !option.common) {
      *hidden_some = true;
      continue;
    }
    if (option.group != group) text += fmt::format("{}:\n", option.group);
    group = option.group;
    std::string standard =
        option.kind == catalog::OptionKind::kFlag || option.default_text == "none" ? "" : fmt::format(" [{}]", option.default_text);
    text += fmt::format("  {:<{}}  {}{}\n", Left(option), width, option.help, standard);
  }
  return text;
}

}  // namespace

std::string ProgramHelp() {
  std::string text =
      fmt::format("headrace {}: moves data out of BigQuery, and between file formats\n\nusage: headrace VERB ...\n", Version());
  for (const VerbText& verb : kTexts) text += fmt::format("  {:<8}  {}\n", VerbName(verb.verb), verb.summary);
  text += fmt::format("\n'headrace VERB --help' explains one of them, '--help-all' lists all its options.\n\nexample:\n  {}\n",
                      TextOf(Verb::kCopy).example);
  text +=
      "\nexit codes: 0 all rows done, 1 failed, 2 usage, 3 done with rejected rows, 4 stopped and resumable.\n"
      "The first SIGINT or SIGTERM stops a job at a checkpoint, the second at once.\n";
  return text;
}

std::string VerbHelp(Verb verb, bool all) {
  const VerbText& about = TextOf(verb);
  std::string text = fmt::format("usage: {}\n\n", about.usage);
  if (about.about.empty()) {
    text += fmt::format("{}\n", about.summary);
  } else {
    text += fmt::format("{}\n", about.about);
  }
  text += fmt::format("\n  {}\n\n", about.example);
  bool hidden_some = false;
  text += OptionLines(VerbBit(verb), all, &hidden_some);
  if (hidden_some) text += fmt::format("'headrace {} --help-all' lists all options.\n", VerbName(verb));
  return text;
}

}  // namespace headrace::cli
