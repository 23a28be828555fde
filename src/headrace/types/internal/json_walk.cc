#include "headrace/types/internal/json_walk.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/json_text.h"
#include "headrace/types/value_text.h"

namespace headrace::internal {

namespace ondemand = simdjson::ondemand;

arrow::Status JsonError(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return arrow::Status::Invalid("not valid UTF-8");
    case simdjson::UNESCAPED_CHARS:
      return arrow::Status::Invalid("not JSON: a control character in a string");
    case simdjson::STRING_ERROR:
      return arrow::Status::Invalid("not JSON: a bad escape in a string");
    case simdjson::UNCLOSED_STRING:
      return arrow::Status::Invalid("not JSON: a string without its end");
    case simdjson::EMPTY:
      return arrow::Status::Invalid("not JSON: nothing there");
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return arrow::Status::OutOfMemory("JSON text too long: ", simdjson::error_message(error));
    default:
      return arrow::Status::Invalid("not JSON");
  }
}

arrow::Result<ondemand::document*> JsonDocument::Open(std::string_view text) {
  buffer_.assign(text);
  return Iterate();
}

arrow::Result<ondemand::document*> JsonDocument::OpenInBrackets(std::string_view text) {
  buffer_.assign("[").append(text).append("]");
  return Iterate();
}

arrow::Result<ondemand::document*> JsonDocument::Iterate() {
  length_ = buffer_.size();
  buffer_.append(simdjson::SIMDJSON_PADDING, '\0');
  auto error = parser_.iterate(simdjson::padded_string_view(buffer_.data(), length_, buffer_.size())).get(document_);
  if (error != simdjson::SUCCESS) return JsonError(error);
  return &document_;
}

arrow::Status JsonDocument::ExpectEnd() {
  if (document_.current_location().error() == simdjson::OUT_OF_BOUNDS) return arrow::Status::OK();
  return arrow::Status::Invalid("not JSON: something follows the value");
}

arrow::Result<std::string_view> NumberToken(ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && (token.back() == ' ' || token.back() == '\t' || token.back() == '\n' || token.back() == '\r')) {
    token.remove_suffix(1);
  }
  if (IsJsonNumber(token)) return token;
  return arrow::Status::Invalid(fmt::format("not JSON: {} is no value", Quoted(token)));
}

arrow::Result<bool> BoolOf(ondemand::value& value) {
  bool result = false;
  if (auto error = value.get_bool().get(result)) return JsonError(error);
  return result;
}

arrow::Status TakeNull(ondemand::value& value) {
  bool null = false;
  if (auto error = value.is_null().get(null)) return JsonError(error);
  return null ? arrow::Status::OK() : arrow::Status::Invalid("not JSON");
}

arrow::Status WalkJson(ondemand::value& value, int depth) {
  ondemand::json_type type{};
  if (auto error = value.type().get(type)) return JsonError(error);
  const bool nests = type == ondemand::json_type::array || type == ondemand::json_type::object;
  if (nests && depth <= 0) {
    return arrow::Status::Invalid(fmt::format("more than {} JSON arrays and objects inside each other", kMaxJsonNesting));
  }
  switch (type) {
    case ondemand::json_type::array: {
      ondemand::array array;
      if (auto error = value.get_array().get(array)) return JsonError(error);
      for (auto item : array) {
        ondemand::value element;
        if (auto error = item.get(element)) return JsonError(error);
        ARROW_RETURN_NOT_OK(WalkJson(element, depth - 1));
      }
      return arrow::Status::OK();
    }
    case ondemand::json_type::object: {
      ondemand::object object;
      if (auto error = value.get_object().get(object)) return JsonError(error);
      for (auto item : object) {
        ondemand::field field;
        if (auto error = std::move(item).get(field)) return JsonError(error);
        if (auto error = field.unescaped_key().error()) return JsonError(error);
        ARROW_RETURN_NOT_OK(WalkJson(field.value(), depth - 1));
      }
      return arrow::Status::OK();
    }
    case ondemand::json_type::string: {
      std::string_view text;
      if (auto error = value.get_string().get(text)) return JsonError(error);
      return arrow::Status::OK();
    }
    case ondemand::json_type::number:
      return NumberToken(value).status();
    case ondemand::json_type::boolean:
      return BoolOf(value).status();
    case ondemand::json_type::null:
      return TakeNull(value);
  }
  return JsonError(simdjson::TAPE_ERROR);
}

}  // namespace headrace::internal
