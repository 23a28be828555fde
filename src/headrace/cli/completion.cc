#include "headrace/cli/completion.h"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/cli/exit_code.h"
#include "headrace/cli/verb_table.h"
#include "headrace/cli/verbs.h"

namespace headrace::cli {
namespace {

using catalog::Option;
using catalog::OptionKind;
using catalog::PathHint;

constexpr std::string_view kHelpOptions = "--help --help-all";

std::string VerbWords() { return fmt::format("{} help", fmt::join(VerbNames(), " ")); }

std::string_view WordsOf(const Option& option) { return option.kind == OptionKind::kBool ? "true false" : option.words; }

bool MayRepeat(const Option& option) { return option.kind == OptionKind::kList || option.kind == OptionKind::kEach; }

/// In single quotes; each shell has its own way to put one inside.
std::string Quoted(std::string_view text, std::string_view escaped_quote) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') {
      quoted += escaped_quote;
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// ---- bash

constexpr std::string_view kBashStart = R"bash(# bash completion of headrace; `headrace completion bash` prints it

# _headrace_offer PATHS WORDS: PATHS is file, directory or nothing.
_headrace_offer() {
  local kind=()
  case $1 in
    file) kind=(-f) ;;
    directory) kind=(-d) ;;
  esac
  [[ -z $1 ]] || compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "${kind[@]}" -W "$2" -P "$prefix" -- "$current")
}

_headrace() {
  local current=${COMP_WORDS[COMP_CWORD]} previous= prefix= equals=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _headrace_offer '' '@VERBS@ --help --help-all --version'
    return
  fi
  previous=${COMP_WORDS[COMP_CWORD-1]}
  # --option=value is three words where bash takes words apart at '=', which it does unless told otherwise, else one.
  if [[ $current == = ]]; then
    current= equals=1
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]} equals=1
  elif [[ $current == --*=* ]]; then
    previous=${current%%=*} prefix=$previous= current=${current#*=} equals=1
  fi
  case $previous in
)bash";
constexpr std::string_view kBashMiddle = R"bash(  esac
  [[ -z $equals ]] || return
  local options= paths= words=
  case ${COMP_WORDS[1]} in
)bash";
constexpr std::string_view kBashEnd = R"bash(  esac
  if [[ $current == -* ]]; then
    _headrace_offer '' "$options"
  else
    _headrace_offer "$paths" "$words"
  fi
}

complete -F _headrace headrace
)bash";

std::string_view PathName(PathHint path) {
  switch (path) {
    case PathHint::kNone:
      return "";
    case PathHint::kFile:
      return "file";
    case PathHint::kDirectory:
      return "directory";
  }
  return "";
}

/// What follows an option, by option: options with the same values share a branch.
std::string BashValues() {
  std::map<std::string, std::vector<std::string>> branches;
  for (const Option& option : catalog::Options()) {
    if (option.hidden) continue;
    std::string action = option.kind == OptionKind::kFlag
                             ? "[[ -z $equals ]] || { _headrace_offer '' 'true false'; return; }"
                             : fmt::format("_headrace_offer '{}' '{}'\n      return", PathName(option.path), WordsOf(option));
    if (option.kind != OptionKind::kFlag && WordsOf(option).empty() && option.path == PathHint::kNone) action = "return";
    branches[action].push_back(catalog::CommandLineName(option.name));
  }
  std::string text;
  for (const auto& [action, names] : branches) text += fmt::format("    {})\n      {}\n      ;;\n", fmt::join(names, " | "), action);
  return text;
}

/// What a verb's positionals may be all together: which one is completed is not asked.
struct PositionalOffer {
  PathHint path = PathHint::kNone;
  std::string words;
};
PositionalOffer OfferOf(const VerbRow& row) {
  PositionalOffer offer;
  for (const Positional& positional : row.positionals) {
    if (offer.path == PathHint::kNone) offer.path = positional.path;
    offer.words += positional.words;
  }
  return offer;
}

std::string BashVerbs() {
  std::string text;
  for (const VerbRow& row : Verbs()) {
    std::string options;
    for (const Option* option : OptionsOf(row)) options += catalog::CommandLineName(option->name) + " ";
    const PositionalOffer offer = OfferOf(row);
    text += fmt::format("    {})\n      options='{}{}' paths='{}' words='{}'\n      ;;\n", row.name, options, kHelpOptions,
                        PathName(offer.path), offer.words);
  }
  return text + fmt::format("    help)\n      words='{}'\n      ;;\n", fmt::join(VerbNames(), " "));
}

std::string BashScript() {
  std::string start(kBashStart);
  start.replace(start.find("@VERBS@"), 7, VerbWords());
  return start + BashValues() + std::string(kBashMiddle) + BashVerbs() + std::string(kBashEnd);
}

// ---- zsh

constexpr std::string_view kZshStart = R"zsh(#compdef headrace
# zsh completion of headrace; `headrace completion zsh` prints it

_headrace_words_or_files() {
  _alternative "words:word:($*)" 'files:file:_files'
}

_headrace() {
  local curcontext=$curcontext verb state line
  local -a verbs
  typeset -A opt_args
  if (( CURRENT == 2 )); then
    verbs=(
)zsh";
constexpr std::string_view kZshMiddle = R"zsh(    )
    _describe -t verbs verb verbs
    return
  fi
  verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
)zsh";
constexpr std::string_view kZshEnd = R"zsh(  esac
}

# Loaded as a completion function it is called at once; read by `source` it is only made known.
if [[ ${funcstack[1]} == _headrace ]]; then
  _headrace "$@"
else
  compdef _headrace headrace
fi
)zsh";

std::string ZshQuoted(std::string_view text) { return Quoted(text, "'\\''"); }

/// `text` inside a specification of _arguments, where colons and brackets are its own.
std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(PathHint path, std::string_view words) {
  if (!words.empty() && path != PathHint::kNone) return fmt::format(" _headrace_words_or_files {}", words);
  if (!words.empty()) return fmt::format("({})", words);
  if (path == PathHint::kFile) return "_files";
  return path == PathHint::kDirectory ? "_files -/" : " ";
}

std::string ZshOption(const Option& option) {
  const bool flag = option.kind == OptionKind::kFlag;
  std::string text = fmt::format("{}{}{}[{}]", MayRepeat(option) ? "*" : "", catalog::CommandLineName(option.name), flag ? "" : "=",
                                 ZshEscaped(option.help));
  if (!flag) text += fmt::format(":{}:{}", catalog::ValueName(option), ZshAction(option.path, WordsOf(option)));
  return ZshQuoted(text);
}

std::string ZshScript() {
  std::string text(kZshStart);
  for (const VerbRow& row : Verbs()) text += fmt::format("      {}\n", ZshQuoted(fmt::format("{}:{}", row.name, ZshEscaped(row.summary))));
  text += "      'help:explain a verb'\n";
  text += kZshMiddle;
  for (const VerbRow& row : Verbs()) {
    text +=
        fmt::format("    {})\n      _arguments \\\n        '(- *)'{{-h,--help}}'[explain]' '(- *)--help-all[list all options]'", row.name);
    for (const Option* option : OptionsOf(row)) text += fmt::format(" \\\n        {}", ZshOption(*option));
    const PositionalOffer offer = OfferOf(row);
    if (!row.positionals.empty()) {
      text += fmt::format(" \\\n        {}", ZshQuoted(fmt::format("{}:{}:{}", row.positionals.size() > 1 ? "*" : "1",
                                                                   row.positionals.front().name, ZshAction(offer.path, offer.words))));
    }
    text += "\n      ;;\n";
  }
  text += fmt::format("    help)\n      _arguments '1:verb:({})'\n      ;;\n", fmt::join(VerbNames(), " "));
  return text + std::string(kZshEnd);
}

// ---- fish

/// Inside single quotes of fish, a backslash too is its own.
std::string FishQuoted(std::string_view text) {
  std::string doubled;
  for (char c : text) {
    if (c == '\\') doubled += '\\';
    doubled += c;
  }
  return Quoted(doubled, "\\'");
}

std::string FishOffer(PathHint path, std::string_view words) {
  std::string text = path == PathHint::kFile ? " -F" : " -f";
  std::string offered(words);
  if (path == PathHint::kDirectory) offered = "(__fish_complete_directories)";
  if (!offered.empty()) text += fmt::format(" -a {}", FishQuoted(offered));
  return text;
}

std::string FishOption(const VerbRow& row, const Option& option) {
  const bool flag = option.kind == OptionKind::kFlag;
  return fmt::format("complete -c headrace -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", row.name,
                     catalog::CommandLineName(option.name).substr(2), flag ? "" : " -r" + FishOffer(option.path, WordsOf(option)),
                     FishQuoted(option.help));
}

std::string FishScript() {
  std::string text = "# fish completion of headrace; `headrace completion fish` prints it\n\n";
  for (const VerbRow& row : Verbs()) {
    text += fmt::format("complete -c headrace -n __fish_use_subcommand -f -a {} -d {}\n", row.name, FishQuoted(row.summary));
  }
  text += fmt::format("complete -c headrace -n __fish_use_subcommand -f -a help -d 'explain a verb'\n");
  text += "complete -c headrace -s h -l help -d 'explain'\ncomplete -c headrace -l help-all -d 'list all options'\n";
  text += "complete -c headrace -n __fish_use_subcommand -l version -d 'print the versions'\n";
  text += fmt::format("complete -c headrace -n '__fish_seen_subcommand_from help' -f -a '{}'\n", fmt::join(VerbNames(), " "));
  for (const VerbRow& row : Verbs()) {
    const PositionalOffer offer = OfferOf(row);
    text += fmt::format("\ncomplete -c headrace -n '__fish_seen_subcommand_from {}'{}\n", row.name, FishOffer(offer.path, offer.words));
    for (const Option* option : OptionsOf(row)) text += FishOption(row, *option);
  }
  return text;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return BashScript();
  if (shell == "zsh") return ZshScript();
  return shell == "fish" ? FishScript() : "";
}

int Completion(Session session) {
  std::string script = CompletionScript(session.arguments.positionals[0]);
  script.pop_back();  // Result ends the line
  session.console.Result(script);
  return kExitDone;
}

}  // namespace headrace::cli
