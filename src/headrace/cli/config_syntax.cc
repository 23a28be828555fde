#include "headrace/cli/config_syntax.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

// Compiled into this file alone, without exceptions: the parser's answer is a value or an error.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace headrace::cli {
namespace {

using Kind = ConfigValue::Kind;

arrow::Status SyntaxError(std::string_view syntax, size_t line, size_t column, std::string_view why) {
  return MakeError({.code = Code::kInvalidArgument, .reason = "USAGE"},
                   fmt::format("line {}, column {}: this is no {}{}{}", line, column, syntax, why.empty() ? "" : ": ", why));
}

// ---- TOML

// toml++ frees nested tables by recursion, and each dot of a key nests one: a file of a mebibyte of them would use up the stack. No
// option's key has a dot and a number has one, so this is far above what any config file has on a line, and 256 nested values (the parser's
// own limit) of such lines are still harmless.
constexpr int kMaxDotsInLine = 16;

/// Behind the last quote of the TOML string whose first quote is at `start`, or where one without an end stops.
size_t EndOfString(std::string_view text, size_t start) {
  const char quote = text[start];
  const std::string three(3, quote);
  const bool has_lines = text.substr(start, 3) == three;
  size_t at = start + (has_lines ? 3 : 1);
  while (at < text.size()) {
    if (text[at] == '\\' && quote == '"') {
      at += 2;
    } else if (!has_lines && (text[at] == quote || text[at] == '\n')) {
      return text[at] == quote ? at + 1 : at;
    } else if (has_lines && text.substr(at, 3) == three) {
      // One or two quotes in front of the last three are of the string itself.
      return std::min({text.find_first_not_of(quote, at), at + 5, text.size()});
    } else {
      ++at;
    }
  }
  return text.size();
}

/// The first line with more dots outside strings and comments than that, or 0.
size_t LineOfTooManyDots(std::string_view text) {
  size_t line = 1;
  int dots = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t next = at + 1;
    if (c == '"' || c == '\'') next = EndOfString(text, at);
    if (c == '#') next = std::min(text.find('\n', at), text.size());
    if (c == '.' && ++dots > kMaxDotsInLine) return line;
    if (c == '\n') dots = 0;
    line += static_cast<size_t>(std::ranges::count(text.substr(at, next - at), '\n'));
    at = next;
  }
  return 0;
}

/// What the parser says, without the piece of the file that it quotes.
std::string_view WithoutQuotedInput(std::string_view description) {
  description = description.substr(0, description.find(", saw "));
  return description.substr(0, description.find("; saw "));
}

ConfigValue TomlArray(const toml::array& array) {
  ConfigValue value{.kind = Kind::kTexts, .what = "an array"};
  for (const toml::node& item : array) {
    if (!item.is_string()) return {.what = "an array of other things than strings"};
    value.items.push_back(item.ref<std::string>());
  }
  return value;
}

ConfigValue TomlValue(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return {.kind = Kind::kText, .text = node.ref<std::string>(), .what = "a string"};
    case toml::node_type::integer:
      return {.kind = Kind::kWholeNumber, .text = std::to_string(node.ref<int64_t>()), .what = "a whole number"};
    case toml::node_type::floating_point:
      return {.kind = Kind::kNumber, .text = fmt::format("{}", node.ref<double>()), .what = "a number with a fraction"};
    case toml::node_type::boolean:
      return {.kind = Kind::kBoolean, .text = node.ref<bool>() ? "true" : "false", .what = "a boolean"};
    case toml::node_type::array:
      return TomlArray(*node.as_array());
    case toml::node_type::table:
      return {.what = "a table"};
    default:
      return {.what = "a date or time without quotes"};
  }
}

// ---- JSON

/// Characters one by one, counting the lines that are behind it: the parser tells no place of what it has understood.
class LineCountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCountingIterator(std::string_view::const_iterator at, size_t* line) : at_(at), line_(line) {}
  const char& operator*() const { return *at_; }
  LineCountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const LineCountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const LineCountingIterator& other) const { return at_ != other.at_; }

 private:
  std::string_view::const_iterator at_;
  size_t* line_;
};

/// Collects the members of the outer object. An object or array inside a value ends the parse: the value has a kind that no option takes.
class JsonEntries final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEntries(const size_t* line) : line_(line) {}

  bool null() override { return Scalar({.what = "null"}); }
  bool boolean(bool value) override { return Scalar({.kind = Kind::kBoolean, .text = value ? "true" : "false", .what = "a boolean"}); }
  bool number_integer(number_integer_t value) override { return WholeNumber(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return WholeNumber(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return Scalar({.kind = Kind::kNumber, .text = text, .what = "a number with a fraction"});
  }
  bool string(string_t& value) override {
    if (!in_array_) return Scalar({.kind = Kind::kText, .text = value, .what = "a string"});
    entries_.back().value.items.push_back(value);
    return true;
  }
  bool binary(binary_t& /*value*/) override { return Scalar({.what = "binary data"}); }
  bool start_object(size_t /*elements*/) override {
    if (!in_object_) return in_object_ = true;
    return Ended("an object");
  }
  bool key(string_t& name) override {
    entries_.push_back({.key = name, .line = *line_});
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t /*elements*/) override {
    if (!in_object_) return false;
    if (in_array_) return Ended("an array in an array");
    in_array_ = true;
    entries_.back().value = {.kind = Kind::kTexts, .what = "an array"};
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*last_token*/, const nlohmann::json::exception& error) override {
    error_ = error.what();
    return false;
  }

  /// Stopped on purpose, with all that is worth knowing in entries().
  bool ended() const { return ended_; }
  const std::string& error() const { return error_; }
  std::vector<ConfigEntry>& entries() { return entries_; }

 private:
  bool WholeNumber(std::string text) { return Scalar({.kind = Kind::kWholeNumber, .text = std::move(text), .what = "a whole number"}); }
  bool Scalar(ConfigValue value) {
    if (!in_object_) return false;
    if (in_array_) return Ended("an array of other things than strings");
    entries_.back().value = std::move(value);
    return true;
  }
  bool Ended(std::string_view what) {
    entries_.back().value = {.what = what};
    ended_ = true;
    return false;
  }

  const size_t* line_;
  bool in_object_ = false;
  bool in_array_ = false;
  bool ended_ = false;
  std::string error_;
  std::vector<ConfigEntry> entries_;
};

/// "[json.exception.parse_error.101] parse error at line 2, column 3: syntax error while ... - invalid literal; last read: '...'; expected
/// ..." as our own, with the place and the reason, without what was read.
arrow::Status JsonSyntaxError(std::string_view text, size_t line) {
  size_t column = 0;
  constexpr std::string_view kColumn = "column ";
  if (size_t at = text.find(kColumn); at != std::string_view::npos) {
    for (char c : text.substr(at + kColumn.size())) {
      if (c < '0' || c > '9') break;
      column = column * 10 + static_cast<size_t>(c - '0');
    }
  }
  size_t why = text.find(" - ");
  std::string_view reason = why == std::string_view::npos ? "" : text.substr(why + 3);
  return SyntaxError("JSON", line, column, reason.substr(0, reason.find("; last read")));
}

}  // namespace

arrow::Result<std::vector<ConfigEntry>> ParseTomlConfig(std::string_view text) {
  if (const size_t line = LineOfTooManyDots(text); line > 0) {
    return MakeError({.code = Code::kInvalidArgument, .reason = "USAGE"}, fmt::format("line {}: keys of options have no dots", line));
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::source_position place = parsed.error().source().begin;
    return SyntaxError("TOML", place.line, place.column, WithoutQuotedInput(parsed.error().description()));
  }
  std::vector<ConfigEntry> entries;
  for (const auto& [key, node] : parsed.table()) {
    entries.push_back({.key = std::string(key.str()), .line = key.source().begin.line, .value = TomlValue(node)});
  }
  std::ranges::sort(entries, {}, &ConfigEntry::line);
  return entries;
}

arrow::Result<std::vector<ConfigEntry>> ParseJsonConfig(std::string_view text) {
  size_t line = 1;
  JsonEntries handler(&line);
  const LineCountingIterator begin(text.begin(), &line);
  const LineCountingIterator end(text.end(), &line);
  const bool complete = nlohmann::json::sax_parse(begin, end, &handler);
  if (!complete && !handler.ended()) {
    if (!handler.error().empty()) return JsonSyntaxError(handler.error(), line);
    return MakeError({.code = Code::kInvalidArgument, .reason = "USAGE"}, "it holds no object with options as its members");
  }
  return std::move(handler.entries());
}

std::string TomlString(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace headrace::cli
