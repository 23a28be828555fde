#include "headrace/cli/man_page.h"

#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "headrace/cli/exit_code.h"
#include "headrace/cli/verb_table.h"
#include "headrace/cli/verbs.h"
#include "headrace/cli/version.h"

namespace headrace::cli {
namespace {

struct Entry {
  std::string_view name;
  std::string_view meaning;
};

constexpr Entry kEnvironment[] = {
    {"BIGQUERY_STORAGE_EMULATOR_HOST",
     "host:port of a server that is read instead of BigQuery, in plaintext and without credentials unless it begins with https://. "
     "--bigquery-storage-endpoint wins over it."},
    {"GOOGLE_APPLICATION_CREDENTIALS", "The credential file of --credentials adc, the default, before gcloud's and the metadata server."},
    {"GRPC_TRACE", "What gRPC traces on standard error; with it GRPC_VERBOSITY is not touched."},
    {"GRPC_VERBOSITY", "How much gRPC itself says on standard error; nothing, unless it is set."},
    {"HOME", "Where gcloud's credential file is looked for."},
    {"https_proxy, no_proxy", "The proxy to the https servers that give access tokens."},
    {"NO_COLOR", "With any value but an empty one, errors and warnings on the terminal have no color."},
    {"TERM", "With dumb, or without it, no line on the terminal is rewritten to show progress."},
    {"ENV_NAME of --credentials token:ENV_NAME", "Holds an access token."},
};

constexpr Entry kFiles[] = {
    {"_headrace_manifest.json", "In a directory that was written: the files that are its result. Without it the directory is no result."},
    {"~/.config/gcloud/application_default_credentials.json", "What gcloud auth application-default login has left."},
    {"FILE.toml, FILE.json", "What --config names; see CONFIG FILES."},
};

constexpr std::string_view kConfigFiles =
    "A config file holds options: its keys are their names without the dashes in front, with - or _ between the words, and its values are "
    "strings, whole numbers, true or false, and arrays of strings for options that take several. What the verb does not take, and what no "
    "option is, is an error. The command line wins over the file, --quiet=false over quiet = true; a list given there replaces the file's. "
    "Relative paths start from the working directory, as on the command line. --print-config prints such a file.";

/// Text as roff shows it: nothing in it is a request or an escape.
std::string Roff(std::string_view text) {
  std::string escaped;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '~') {
      escaped += "\\(ti";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Section(std::string_view title) { return fmt::format(".SH {}\n", title); }

std::string Tagged(std::string_view name, std::string_view meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(name), Roff(meaning));
}

std::string Example(std::string_view text) { return fmt::format(".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", Roff(text)); }

std::string Synopsis() {
  std::string text = Section("SYNOPSIS") + ".nf\n";
  for (const VerbRow& row : Verbs()) {
    text += fmt::format("\\fBheadrace {}\\fR{}{}\n", row.name, row.usage.empty() ? "" : " ", Roff(row.usage));
  }
  return text + ".fi\n";
}

std::string VerbSections() {
  std::string text = Section("VERBS");
  for (const VerbRow& row : Verbs()) {
    std::string summary(row.summary);
    summary.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(summary.front())));
    text += fmt::format(".SS {}\n{}.\n", row.name, Roff(summary));
    if (!row.about.empty()) text += fmt::format(".PP\n{}\n", Roff(row.about));
    text += Example(row.example);
  }
  return text;
}

std::string OptionSections() {
  std::string text = Section("OPTIONS");
  text += Roff(
      "Sizes are bytes, or have a unit: K, M, G (or KiB, MiB, GiB) are powers of 1024, KB, MB, GB of 1000. A TIME is 500ms, 30s, 5m or 1h; "
      "a "
      "bare number is seconds.\n");
  std::string_view group;
  for (const catalog::Option& option : catalog::Options()) {
    if (option.hidden) continue;
    if (option.group != group) text += fmt::format(".SS {}\n", option.group);
    group = option.group;
    const std::string_view value = catalog::ValueName(option);
    text += fmt::format(".TP\n\\fB{}\\fR{}\\fI{}\\fR\n{}.\nDefault: {}. Verbs: {}.\n", Roff(catalog::CommandLineName(option.name)),
                        value.empty() ? "" : " ", Roff(value), Roff(option.help), Roff(option.default_text),
                        Roff(catalog::VerbsText(option.verbs)));
  }
  return text;
}

}  // namespace

std::string ManualPage() {
  std::string text = fmt::format(".TH HEADRACE 1 \"\" \"headrace {}\" \"User Commands\"\n", Version());
  text += ".nh\n";  // no hyphen at the end of a line is part of a command
  text += Section("NAME") + "headrace \\- moves data out of BigQuery, and between file formats\n";
  text += Synopsis();
  text += Section("DESCRIPTION");
  text += Roff(
      "Each verb is explained by headrace VERB --help, and all its options by --help-all. Standard output holds the result only; "
      "progress, logs and errors go to standard error. The first SIGINT or SIGTERM stops a job at a checkpoint, the second at once.\n");
  text += VerbSections() + OptionSections();
  text += Section("CONFIG FILES") + Roff(kConfigFiles) + "\n";
  text += Section("EXIT STATUS");
  for (const ExitCodeRow& row : kExitCodes) text += Tagged(std::to_string(static_cast<int>(row.code)), row.meaning);
  text += Section("ENVIRONMENT");
  for (const Entry& entry : kEnvironment) text += Tagged(entry.name, entry.meaning);
  text += Section("FILES");
  for (const Entry& entry : kFiles) text += Tagged(entry.name, entry.meaning);
  text += Section("EXAMPLES") + Roff("A table into Parquet files, resumable:\n") + Example(RowOf(Verb::kCopy).example);
  text += ".PP\n" + Roff("Files of one format into another, and rows onto standard output:\n");
  text += Example("headrace copy ./orders/ ./orders.csv\nheadrace copy bq:my-project.sales.orders - --format ndjson");
  text += ".PP\n" + Roff("Every night with the options of a file:\n");
  text += Example("headrace copy bq:my-project.sales.orders ./orders/ --config nightly.toml --overwrite");
  return text;
}

int PrintManual(Session session) {
  std::string page = ManualPage();
  page.pop_back();  // Result ends the line
  session.console.Result(page);
  return kExitDone;
}

}  // namespace headrace::cli
