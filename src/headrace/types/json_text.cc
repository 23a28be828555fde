#include "headrace/types/json_text.h"

#include <fmt/format.h>

#include "headrace/types/internal/json_walk.h"
#include "headrace/types/value_text.h"

namespace headrace {
namespace {

size_t DigitsAt(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && text[at + count] >= '0' && text[at + count] <= '9') ++count;
  return count;
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out->append(text.substr(copied, i - copied));
    copied = i + 1;
    out->push_back('\\');
    switch (c) {
      case '"':
      case '\\':
        out->push_back(static_cast<char>(c));
        break;
      case '\n':
        out->push_back('n');
        break;
      case '\r':
        out->push_back('r');
        break;
      case '\t':
        out->push_back('t');
        break;
      default:
        *out += "u00";
        out->push_back(kHex[c >> 4]);
        out->push_back(kHex[c & 15]);
    }
  }
  out->append(text.substr(copied));
  out->push_back('"');
}

bool IsJsonNumber(std::string_view token) {
  size_t at = token.starts_with('-') ? 1 : 0;
  const size_t whole = DigitsAt(token, at);
  if (whole == 0 || (whole > 1 && token[at] == '0')) return false;
  at += whole;
  if (at < token.size() && token[at] == '.') {
    const size_t fraction = DigitsAt(token, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    const size_t exponent = DigitsAt(token, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == token.size();
}

struct JsonChecker::State {
  internal::JsonDocument document;
};

JsonChecker::JsonChecker() : state_(std::make_unique<State>()) {}
JsonChecker::~JsonChecker() = default;
JsonChecker::JsonChecker(JsonChecker&&) noexcept = default;
JsonChecker& JsonChecker::operator=(JsonChecker&&) noexcept = default;

arrow::Status JsonChecker::Check(std::string_view text) {
  const auto check = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto* document, state_->document.OpenInBrackets(text));
    simdjson::ondemand::array array;
    if (auto error = document->get_array().get(array)) return internal::JsonError(error);
    int count = 0;
    for (auto item : array) {
      simdjson::ondemand::value value;
      if (auto error = item.get(value)) return internal::JsonError(error);
      if (++count > 1) return arrow::Status::Invalid("not JSON: more than one value");
      ARROW_RETURN_NOT_OK(internal::WalkJson(value, kMaxJsonNesting));
    }
    if (count == 0) return arrow::Status::Invalid("not JSON: nothing there");
    return state_->document.ExpectEnd();
  };
  auto status = check();
  if (status.ok()) return status;
  return arrow::Status::Invalid(fmt::format("{}: {}", Quoted(text), status.message()));
}

}  // namespace headrace
