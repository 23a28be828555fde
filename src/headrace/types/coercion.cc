#include "headrace/types/coercion.h"

namespace headrace {
namespace {

using enum TypeKind;
using From = ValueSource;
using enum Coercion;

constexpr CoercionRow kTable[] = {
    {kInt64, From::kInteger, kAlways, "the same number; beyond 64 bits is an error"},
    {kInt64, From::kDecimal, kUnlessStrict, "when its value is whole (12.0, 1.5e3)"},
    {kInt64, From::kText, kAlways, "digits; a decimal as such a number"},
    {kFloat64, From::kInteger, kAlways, "the nearest FLOAT64"},
    {kFloat64, From::kDecimal, kAlways, "the nearest FLOAT64; beyond its range is an error"},
    {kFloat64, From::kText, kAlways, "a number, or NaN, Infinity, -Infinity in any case"},
    {kBool, From::kBool, kAlways, "the same"},
    {kBool, From::kText, kAlways, "true or false in any case"},
    {kString, From::kInteger, kUnlessStrict, "as it is written"},
    {kString, From::kDecimal, kUnlessStrict, "as it is written"},
    {kString, From::kText, kAlways, "the same; it must be UTF-8"},
    {kString, From::kBool, kUnlessStrict, "true or false"},
    {kBytes, From::kText, kAlways, "base64, standard alphabet with padding"},
    {kNumeric, From::kInteger, kAlways, "by its digits; what does not fit is an error"},
    {kNumeric, From::kDecimal, kAlways, "by its digits; more digits after the point than the scale are an error, or rounded when asked"},
    {kNumeric, From::kText, kAlways, "as such a number"},
    {kBigNumeric, From::kInteger, kAlways, "by its digits; what does not fit is an error"},
    {kBigNumeric, From::kDecimal, kAlways, "by its digits; more digits after the point than the scale are an error, or rounded when asked"},
    {kBigNumeric, From::kText, kAlways, "as such a number"},
    {kDate, From::kText, kAlways, "YYYY-MM-DD"},
    {kTime, From::kText, kAlways, "HH:MM:SS with 0 to 6 digits after a point"},
    {kDatetime, From::kText, kAlways, "a date, T or a space, a time; unless strict, a date alone is its midnight"},
    {kTimestamp, From::kInteger, kAlways, "only with a stated unit: seconds, milliseconds or microseconds since 1970"},
    {kTimestamp, From::kText, kAlways,
     "a datetime and any offset; unless strict, one without an offset is UTC; digits alone as an integer"},
    {kTimestamp12, From::kInteger, kAlways, "only with a stated unit: seconds, milliseconds or microseconds since 1970"},
    {kTimestamp12, From::kText, kAlways, "as TIMESTAMP, with 0 to 12 digits after a point"},
    {kGeography, From::kText, kAlways, "WKT, passed on as it is"},
    {kJson, From::kInteger, kAlways, "the JSON value as it is written"},
    {kJson, From::kDecimal, kAlways, "the JSON value as it is written"},
    {kJson, From::kText, kAlways, "the text of a JSON value"},
    {kJson, From::kBool, kAlways, "the JSON value as it is written"},
    {kJson, From::kObject, kAlways, "the JSON value as it is written"},
    {kJson, From::kArray, kAlways, "the JSON value as it is written"},
    {kInterval, From::kText, kAlways, "Y-M D H:M:S with 0 to 6 digits after a point"},
    {kRange, From::kText, kAlways, "[start, end), UNBOUNDED for an open side"},
    {kStruct, From::kObject, kAlways, "field by field, by name in any case"},
    {std::nullopt, From::kArray, kAlways, "element by element; a null element is an error"},
};

constexpr size_t kKinds = static_cast<size_t>(kStruct) + 2;  // and REPEATED
constexpr size_t kSources = static_cast<size_t>(From::kArray) + 1;

constexpr size_t IndexOf(std::optional<TypeKind> kind) { return kind ? static_cast<size_t>(*kind) : kKinds - 1; }

constexpr auto kLookup = [] {
  std::array<std::array<Coercion, kSources>, kKinds> lookup{};
  for (auto& row : lookup) row.fill(kNever);
  for (const CoercionRow& row : kTable) lookup[IndexOf(row.to)][static_cast<size_t>(row.from)] = row.coercion;
  return lookup;
}();

}  // namespace

std::span<const CoercionRow> CoercionTable() { return kTable; }

Coercion CoercionOf(std::optional<TypeKind> to, ValueSource from) { return kLookup[IndexOf(to)][static_cast<size_t>(from)]; }

std::string_view SourceName(ValueSource source) {
  static constexpr std::array<std::string_view, kSources> kNames = {"whole number", "decimal number", "text", "boolean", "object", "array"};
  return kNames[static_cast<size_t>(source)];
}

}  // namespace headrace
