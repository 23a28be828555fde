#include "headrace/cli/config_file.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/catalog/make.h"
#include "headrace/catalog/nearest_word.h"
#include "headrace/catalog/option_value.h"
#include "headrace/cli/config_syntax.h"
#include "headrace/types/utf8.h"

namespace headrace::cli {
namespace {

using catalog::Option;
using catalog::OptionKind;
using Kind = ConfigValue::Kind;

// Every option of every verb with its longest sensible value is some kilobytes; a larger file is another kind of file.
constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;

arrow::Status WrongFile(const std::string& path, std::string_view why) {
  return InvalidOption("config", fmt::format("--config {}: {}", path, why));
}

bool IsToml(std::string_view path) { return path.ends_with(".toml"); }

size_t LineOfFirstInvalid(std::string_view text) {
  size_t line = 1;
  while (!text.empty()) {
    size_t length = CharacterLength(text);
    if (length == 0) break;
    if (text.front() == '\n') ++line;
    text.remove_prefix(length);
  }
  return line;
}

arrow::Result<std::vector<ConfigEntry>> ParseEntries(const std::string& path, std::string_view text) {
  if (!IsUtf8(text)) return WrongFile(path, fmt::format("line {}: it is not UTF-8", LineOfFirstInvalid(text)));
  auto entries = IsToml(path) ? ParseTomlConfig(text) : ParseJsonConfig(text);
  if (!entries.ok()) return WrongFile(path, entries.status().message());
  return entries;
}

bool TakesSeveral(const Option& option) { return option.kind == OptionKind::kList || option.kind == OptionKind::kEach; }

/// What a value of the option is in a config file.
std::string_view WantedKind(const Option& option) {
  switch (option.kind) {
    case OptionKind::kText:
    case OptionKind::kTime:
      return "a string";
    case OptionKind::kInteger:
      return "a whole number";
    case OptionKind::kBytes:
    case OptionKind::kDuration:
      return "a whole number, or a string with a unit";
    case OptionKind::kNumber:
      return "a number";
    case OptionKind::kFlag:
    case OptionKind::kBool:
      return "true or false";
    case OptionKind::kList:
    case OptionKind::kEach:
      return "an array of strings";
  }
  return "";
}

bool Fits(const Option& option, Kind kind) {
  switch (option.kind) {
    case OptionKind::kText:
    case OptionKind::kTime:
      return kind == Kind::kText;
    case OptionKind::kInteger:
      return kind == Kind::kWholeNumber;
    case OptionKind::kBytes:
    case OptionKind::kDuration:
      return kind == Kind::kWholeNumber || kind == Kind::kText;
    case OptionKind::kNumber:
      return kind == Kind::kWholeNumber || kind == Kind::kNumber || kind == Kind::kText;
    case OptionKind::kFlag:
    case OptionKind::kBool:
      return kind == Kind::kBoolean;
    case OptionKind::kList:
    case OptionKind::kEach:
      return kind == Kind::kTexts || kind == Kind::kText;
  }
  return false;
}

/// The value as the command line would have it.
arrow::Result<std::string> OptionText(const Option& option, const ConfigValue& value) {
  const std::string name(option.name);
  if (!Fits(option, value.kind)) return InvalidOption(name, fmt::format("the value is {}: give {}", value.what, WantedKind(option)));
  if (value.text.find('\0') != std::string::npos) return InvalidOption(name, "the value has a NUL character");
  if (value.kind != Kind::kTexts) return value.text;
  const char separator = option.kind == OptionKind::kEach ? '\n' : ',';
  std::string joined;
  for (const std::string& item : value.items) {
    if (item.find(separator) != std::string::npos || item.find('\0') != std::string::npos) {
      return InvalidOption(name, fmt::format("an item of the array has a {} in it", separator == ',' ? "comma" : "line break or NUL"));
    }
    if (&item != &value.items.front()) joined += separator;
    joined += item;
  }
  return joined;
}

/// The option of a key, or the error that says why there is none. `-` and `_` are the same in a key.
arrow::Result<const Option*> OptionOfKey(const std::string& key, const VerbRow& row) {
  std::string name = key;
  std::ranges::replace(name, '-', '_');
  const Option* option = catalog::FindOption(name);
  if (option != nullptr && option->places == catalog::kCommandLine) {
    return InvalidOption(name, "it belongs on the command line, not into a config file");
  }
  if (option != nullptr && !option->hidden && (option->verbs & row.bit) != 0) return option;
  if (key.starts_with('-')) return InvalidOption(name, "keys are written without the dashes in front");
  return catalog::RefuseOption(name, static_cast<catalog::OptionVerb>(row.bit));
}

arrow::Result<std::pair<const Option*, std::string>> Understand(const ConfigEntry& entry, const VerbRow& row) {
  ARROW_ASSIGN_OR_RAISE(const Option* option, OptionOfKey(entry.key, row));
  ARROW_ASSIGN_OR_RAISE(std::string text, OptionText(*option, entry.value));
  ARROW_RETURN_NOT_OK(catalog::RefuseSecrets({{std::string(option->name), text}}));
  ARROW_RETURN_NOT_OK(catalog::CheckValue(*option, text));
  return std::pair{option, std::move(text)};
}

/// A key as error texts show it; whatever a file has there goes to a terminal.
std::string Shown(const std::string& key) { return TomlString(key.substr(0, 80)); }

/// `text` as a whole number if it is one in the form that TOML has too.
bool IsPlainWholeNumber(const Option& option, const std::string& text) {
  auto value = catalog::ParseInteger(option.name, text);
  return value.ok() && std::to_string(*value) == text;
}

arrow::Result<std::string> TomlText(const Option& option, const std::string& text) {
  if (!IsUtf8(text)) {
    return InvalidOption(std::string(option.name), fmt::format("{} has a value that is not UTF-8: no config file can hold it",
                                                               catalog::CommandLineName(option.name)));
  }
  if (option.kind == OptionKind::kFlag || option.kind == OptionKind::kBool) return text;
  if (TakesSeveral(option)) {
    std::string array;
    const char separator = option.kind == OptionKind::kEach ? '\n' : ',';
    for (size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
      end = text.find(separator, start);
      array += fmt::format("{}{}", array.empty() ? "" : ", ", TomlString(std::string_view(text).substr(start, end - start)));
    }
    return fmt::format("[{}]", array);
  }
  if (option.kind == OptionKind::kInteger) {
    ARROW_ASSIGN_OR_RAISE(int64_t value, catalog::ParseInteger(option.name, text));
    return std::to_string(value);
  }
  const bool number = option.kind == OptionKind::kNumber || option.kind == OptionKind::kBytes || option.kind == OptionKind::kDuration;
  return number && IsPlainWholeNumber(option, text) ? text : TomlString(text);
}

std::string KeyOf(const Option& option) { return catalog::CommandLineName(option.name).substr(2); }

}  // namespace

arrow::Status ApplyConfig(FileSystem* files, Arguments* arguments) {
  if (arguments->config.empty()) return arrow::Status::OK();
  const std::string& path = arguments->config;
  if (!IsToml(path) && !path.ends_with(".json")) {
    return WrongFile(path, "a config file is TOML or JSON and its name ends in .toml or .json");
  }
  auto text = files->ReadAll(path, kMaxConfigBytes);
  if (!text.ok() && CodeOf(text.status()) == Code::kResourceExhausted) return WrongFile(path, "it is larger than 1 MiB: no config file is");
  if (!text.ok()) return WrongFile(path, text.status().message());
  return ApplyConfigText(*text, arguments);
}

arrow::Status ApplyConfigText(std::string_view content, Arguments* arguments) {
  const std::string& path = arguments->config;
  ARROW_ASSIGN_OR_RAISE(auto entries, ParseEntries(path, content));
  std::map<const Option*, size_t> lines;
  for (const ConfigEntry& entry : entries) {
    const std::string where = fmt::format("{}:{}: key {}", path, entry.line, Shown(entry.key));
    auto understood = Understand(entry, RowOf(*arguments->verb));
    if (!understood.ok()) return WithContext(understood.status(), where);
    const auto& [option, text] = *understood;
    const std::string name(option->name);
    if (auto [given, first] = lines.emplace(option, entry.line); !first) {
      return WithContext(InvalidOption(name, fmt::format("it is given already in line {}", given->second)), where);
    }
    const bool off = option->kind == OptionKind::kFlag && text == "false";
    if (off || std::ranges::find(arguments->flags_off, name) != arguments->flags_off.end()) continue;
    arguments->options.emplace(name, text);  // leaves what the command line says
  }
  return arrow::Status::OK();
}

arrow::Result<std::string> ConfigText(const VerbRow& row, const catalog::OptionValues& values) {
  std::string text = fmt::format(
      "# Options of headrace {0}, for headrace {0} --config FILE.toml\n"
      "# A line with a key behind '#' is an example; such options have their default.\n",
      row.name);
  std::string_view group;
  for (const Option* option : OptionsOf(row)) {
    if (option->places == catalog::kCommandLine) continue;
    if (option->group != group) text += fmt::format("\n# ---- {} ----\n", option->group);
    group = option->group;
    const auto set = values.find(std::string(option->name));
    const bool is_set = set != values.end();
    ARROW_ASSIGN_OR_RAISE(const std::string value, TomlText(*option, is_set ? set->second : std::string(option->example)));
    text += fmt::format("\n# {} (default: {})\n{}{} = {}\n", option->help, option->default_text, is_set ? "" : "# ", KeyOf(*option), value);
  }
  return text;
}

}  // namespace headrace::cli
