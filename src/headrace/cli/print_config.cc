// The verb's options in effect as a config file. Nothing is opened but what the options themselves come from: the config file, that of
// `schema` and, for resume, the checkpoint.
#include <utility>

#include "headrace/cli/config_file.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/job_run.h"
#include "headrace/cli/serve_options.h"

namespace headrace::cli {
namespace {

/// The options of the checkpoint with those given over them, as far as resume takes them.
arrow::Result<catalog::OptionValues> ForResume(const Arguments& arguments) {
  ARROW_ASSIGN_OR_RAISE(const PersistedJob persisted, ReadPersistedJob(LocalFileSystem(), arguments.positionals[0]));
  ARROW_ASSIGN_OR_RAISE(const catalog::Configuration configuration, catalog::FromMap(persisted.configuration));
  ARROW_ASSIGN_OR_RAISE(catalog::OptionValues values, catalog::MergeForResume(configuration, arguments.options));
  ARROW_ASSIGN_OR_RAISE(const JobParts parts, MakeParts(configuration.source, configuration.destination, values));
  ARROW_RETURN_NOT_OK(CheckJobOptions(parts.options, *parts.source, *parts.sink));
  ARROW_RETURN_NOT_OK(MetricsPort(values).status());
  std::erase_if(values, [](const auto& value) { return (catalog::FindOption(value.first)->verbs & catalog::kResume) == 0; });
  return values;
}

/// Checked as for a run, as far as the addresses are given.
arrow::Result<catalog::OptionValues> Effective(const Arguments& arguments) {
  const VerbRow& row = RowOf(*arguments.verb);
  if (row.verb == Verb::kServe) {
    ARROW_RETURN_NOT_OK(catalog::CheckOptions(catalog::kServeVerb, std::nullopt, std::nullopt, arguments.options));
    ARROW_RETURN_NOT_OK(MakeServiceOptions(arguments.options).status());
  } else if (arguments.positionals.size() < row.required) {
    ARROW_RETURN_NOT_OK(catalog::RefuseSecrets(arguments.options));
  } else if (row.verb == Verb::kResume) {
    return ForResume(arguments);
  } else {
    ARROW_RETURN_NOT_OK(CheckAsRun(arguments));
  }
  return arguments.options;
}

}  // namespace

int PrintConfig(Session session) {
  auto values = Effective(session.arguments);
  auto text = values.ok() ? ConfigText(RowOf(*session.arguments.verb), *values) : arrow::Result<std::string>(values.status());
  if (!text.ok()) return Fail(session.console, text.status());
  text->pop_back();  // Result ends the line
  session.console.Result(*text);
  return kExitDone;
}

}  // namespace headrace::cli
