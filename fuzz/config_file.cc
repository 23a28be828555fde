// Config files in both syntaxes. What is accepted can be printed, and reads back to the same options.
//
// The first byte of an input chooses the syntax and the verb.
#include "headrace/cli/config_file.h"

#include <string>

#include "fuzz/fuzz_target.h"

namespace headrace::fuzz {
namespace {

constexpr cli::Verb kVerbs[] = {cli::Verb::kCopy, cli::Verb::kServe, cli::Verb::kResume, cli::Verb::kSchema};

void Use(std::string_view text, cli::Arguments arguments) {
  if (!cli::ApplyConfigText(text, &arguments).ok()) return;
  auto printed = cli::ConfigText(cli::RowOf(*arguments.verb), arguments.options);
  if (!printed.ok()) __builtin_trap();
  cli::Arguments again{.verb = arguments.verb, .config = "again.toml"};
  if (!cli::ApplyConfigText(*printed, &again).ok() || again.options != arguments.options) __builtin_trap();
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  Use(bytes.substr(1), {.verb = kVerbs[(choice >> 1) & 3], .config = (choice & 1) == 0 ? "c.toml" : "c.json"});
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "0selected-fields = ['a', \"b\\u00e9\"]\nrow_restriction = \"\"\"\nx > '1'\"\"\"\nmax-stream-count = 0x1F\noverwrite = true\n",
      "0memory-limit = 1_000\nmax-rows-per-second = 2.5e3 # a\n'csv-null-value' = '''N'''\n",
      "0a.b.\"c\" = [{d = 1}, [2024-05-01T10:00:00Z]]\n[[e.f]]\n",
      "0a = [}\n",
      "0a = \xc3\xa9\n",
      "0job-name = \"\"\"a \\\n \xc3\xa9\"\"\"",
      "1{\"selected-fields\": [\"a\", \"b\\u00e9\\ud83d\\ude00\"], \"max-rows-per-second\": 2.5e3, \"overwrite\": false, \"readers\": -4}",
      "1{\"a\": {\"b\": [[null]]}}",
      "3{\"load\": [\"p.d.t=a.csv\"], \"port\": 0}",
  };
  // Every option of every verb, as --print-config prints it.
  for (size_t i = 0; i < std::size(kVerbs); ++i) {
    const auto& row = cli::RowOf(kVerbs[i]);
    catalog::OptionValues values;
    for (const auto* option : cli::OptionsOf(row)) values[std::string(option->name)] = option->example;
    seeds.push_back(static_cast<char>('0' + 2 * i) + cli::ConfigText(row, values).ValueOrDie());
  }
  return seeds;
}

}  // namespace headrace::fuzz
