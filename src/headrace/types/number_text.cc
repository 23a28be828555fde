// Numbers, booleans and bytes of value_text.h.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "headrace/types/schema.h"
#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace {
namespace {

using Words = std::array<uint64_t, 4>;
using Wide = unsigned __int128;

constexpr uint64_t kChunk = 1'000'000'000'000'000'000;  // 10^18: the digits that a word holds at once
constexpr int kChunkDigits = 18;
// Digits of 2^255.
constexpr size_t kMaxDigits = 77;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A decimal text taken apart: sign, digits without leading zeros, and the power of ten of the last digit.
struct DecimalParts {
  bool negative = false;
  std::string digits{};
  int64_t exponent = 0;
};

// An exponent of more digits than this is beyond every type whatever the digits are, and the sums below stay far from overflow.
constexpr int64_t kExponentLimit = 1'000'000'000;

bool TakeExponent(std::string_view text, int64_t* exponent) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return false;
  int64_t value = 0;
  for (char c : text) value = std::min(value * 10 + (c - '0'), kExponentLimit);
  *exponent += negative ? -value : value;
  return true;
}

// [+-] digits [. digits] [e [+-] digits], a digit at least before the exponent.
bool TakeApart(std::string_view text, DecimalParts* parts) {
  parts->digits.clear();
  parts->exponent = 0;
  parts->negative = text.starts_with('-');
  if (parts->negative || text.starts_with('+')) text.remove_prefix(1);
  bool any = false;
  bool point = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(text[i])) break;
    any = true;
    if (point) --parts->exponent;
    if (text[i] != '0' || !parts->digits.empty()) parts->digits.push_back(text[i]);
  }
  if (!any) return false;
  if (i == text.size()) return true;
  return (text[i] == 'e' || text[i] == 'E') && TakeExponent(text.substr(i + 1), &parts->exponent);
}

// Cuts `drop` digits off the end; whether the rest must grow by one. Nothing when digits would be lost and may not.
std::optional<bool> Cut(std::string* digits, int64_t drop, DecimalRounding rounding) {
  const auto size = static_cast<int64_t>(digits->size());
  const int64_t kept = std::max<int64_t>(size - drop, 0);
  const std::string_view lost = std::string_view(*digits).substr(static_cast<size_t>(kept));
  const bool exact = lost.find_first_not_of('0') == std::string_view::npos;
  if (!exact && rounding == DecimalRounding::kError) return std::nullopt;
  bool up = false;
  if (!exact && drop <= size) {  // else less than a tenth of the last place is lost
    const bool half = lost[0] == '5' && lost.find_first_not_of('0', 1) == std::string_view::npos;
    up = lost[0] >= '5';
    if (half && rounding == DecimalRounding::kHalfEven) up = kept > 0 && ((*digits)[static_cast<size_t>(kept - 1)] - '0') % 2 == 1;
  }
  digits->resize(static_cast<size_t>(kept));
  return up;
}

// `words` times `factor` plus `add`; false when it does not fit.
bool MultiplyAdd(Words* words, uint64_t factor, uint64_t add) {
  Wide carry = add;
  for (uint64_t& word : *words) {
    const Wide product = static_cast<Wide>(word) * factor + carry;
    word = static_cast<uint64_t>(product);
    carry = product >> 64;
  }
  return carry == 0;
}

// `words` divided by 10^18; the remainder.
uint64_t DivideByChunk(Words* words) {
  Wide rest = 0;
  for (size_t i = words->size(); i-- > 0;) {
    const Wide current = rest << 64 | (*words)[i];
    if (current == 0) continue;
    (*words)[i] = static_cast<uint64_t>(current / kChunk);
    rest = current % kChunk;
  }
  return static_cast<uint64_t>(rest);
}

void Negate(Words* words) {
  uint64_t carry = 1;
  for (uint64_t& word : *words) {
    word = ~word + carry;
    carry = carry == 1 && word == 0 ? 1 : 0;
  }
}

bool IsZero(const Words& words) { return words == Words{}; }

// The magnitude of `digits` plus `add`; false beyond 256 bits.
bool Magnitude(std::string_view digits, uint64_t add, Words* words) {
  *words = {};
  while (!digits.empty()) {
    const size_t count = std::min<size_t>(digits.size(), kChunkDigits);
    uint64_t chunk = 0;
    uint64_t factor = 1;
    for (char c : digits.substr(0, count)) {
      chunk = chunk * 10 + static_cast<uint64_t>(c - '0');
      factor *= 10;
    }
    if (!MultiplyAdd(words, factor, chunk)) return false;
    digits.remove_prefix(count);
  }
  return MultiplyAdd(words, 1, add);
}

const Words& PowerOfTen(int exponent) {
  static const auto kPowers = [] {
    std::array<Words, kMaxDigits> powers{};
    powers[0] = {1, 0, 0, 0};
    for (size_t i = 1; i < powers.size(); ++i) {
      powers[i] = powers[i - 1];
      (void)MultiplyAdd(&powers[i], 10, 0);  // 10^76 fits into 256 bits
    }
    return powers;
  }();
  return kPowers[static_cast<size_t>(exponent)];
}

void AppendWords(Words words, bool negative, int scale, std::string* out) {
  char digits[kMaxDigits + kChunkDigits];
  constexpr int kSize = static_cast<int>(sizeof(digits));
  int first = kSize;
  while (!IsZero(words)) {
    uint64_t chunk = DivideByChunk(&words);
    for (int i = 0; i < kChunkDigits && (chunk != 0 || !IsZero(words)); ++i, chunk /= 10)
      digits[--first] = static_cast<char>('0' + chunk % 10);
  }
  while (kSize - first < scale + 1) digits[--first] = '0';
  int last = kSize;
  while (last > kSize - scale && digits[last - 1] == '0') --last;
  if (negative) out->push_back('-');
  const int point = kSize - scale;
  out->append(digits + first, static_cast<size_t>(point - first));
  if (last == point) return;
  out->push_back('.');
  out->append(digits + point, static_cast<size_t>(last - point));
}

arrow::Status NoNumber(std::string_view text, std::string_view type) {
  return arrow::Status::Invalid(fmt::format("{} is no {}", Quoted(text), type));
}

bool Equals(std::string_view text, std::string_view word) { return SameColumnName(text, word); }

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> ReverseBase64() {
  std::array<int8_t, 256> reverse{};
  reverse.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i) reverse[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  return reverse;
}
constexpr std::array<int8_t, 256> kReverseBase64 = ReverseBase64();

}  // namespace

void AppendInt64(int64_t value, std::string* out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out->append(digits, static_cast<size_t>(end - digits));
}

arrow::Result<int64_t> ParseInt64(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc{} && end == digits.data() + digits.size() && !digits.empty()) return value;
  return NoNumber(text, "INT64: a whole number from -9223372036854775808 to 9223372036854775807 is wanted");
}

arrow::Result<int64_t> ParseWholeNumber(std::string_view text) {
  auto plain = ParseInt64(text);
  if (plain.ok()) return plain;
  auto decimal = ParseDecimal(text, 19, 0);
  if (!decimal.ok()) return plain.status();
  const arrow::Decimal256 least(std::numeric_limits<int64_t>::min());
  const arrow::Decimal256 most(std::numeric_limits<int64_t>::max());
  if (*decimal < least || *decimal > most) return plain.status();
  return static_cast<int64_t>(decimal->little_endian_array()[0]);
}

arrow::Result<bool> ParseBool(std::string_view text) {
  if (Equals(text, "true")) return true;
  if (Equals(text, "false")) return false;
  return NoNumber(text, "BOOL: true or false is wanted");
}

void AppendDouble(double value, std::string* out) {
  if (std::isnan(value)) {
    *out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    *out += value < 0 ? "-Infinity" : "Infinity";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  *out += text;
  if (text.find_first_of(".e") == std::string_view::npos) *out += ".0";
}

arrow::Result<double> ParseDouble(std::string_view text) {
  std::string_view body = text;
  const bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  double value = 0;
  if (Equals(body, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (Equals(body, "inf") || Equals(body, "infinity")) {
    value = std::numeric_limits<double>::infinity();
    return negative ? -value : value;
  }
  // from_chars would take names and signs that are refused here.
  if (body.empty() || !(IsDigit(body[0]) || body[0] == '.')) return NoNumber(text, "FLOAT64");
  auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (end != body.data() + body.size() || error == std::errc::invalid_argument) return NoNumber(text, "FLOAT64");
  if (error == std::errc::result_out_of_range) {
    DecimalParts parts;
    if (!TakeApart(body, &parts)) return NoNumber(text, "FLOAT64");
    const bool large = static_cast<int64_t>(parts.digits.size()) + parts.exponent > 0;
    if (large && !parts.digits.empty()) return NoNumber(text, "FLOAT64: it is beyond 1.7976931348623157e+308");
    value = 0;
  }
  return negative ? -value : value;
}

bool LosesDigitsAsDouble(std::string_view decimal) {
  constexpr size_t kAlwaysHeld = 15;   // DBL_DIG: so many digits of any decimal come back from a double
  constexpr size_t kMostExact = 1100;  // more than the digits of any double written out
  const size_t exponent = decimal.find_first_of("eE");
  if (decimal.size() <= kAlwaysHeld && exponent == std::string_view::npos) return false;
  std::string digits;
  bool has_point = false;
  for (const char c : decimal.substr(0, exponent)) {
    has_point |= c == '.';
    if (c >= '0' && c <= '9' && (c != '0' || !digits.empty())) digits += c;
  }
  while (has_point && digits.ends_with('0')) digits.pop_back();
  if (digits.empty()) return false;
  const auto value = ParseDouble(decimal);
  if (!value.ok() || !std::isfinite(*value)) return false;
  const bool subnormal = std::abs(*value) < std::numeric_limits<double>::min();  // has fewer bits, or is zero
  if (digits.size() <= kAlwaysHeld && !subnormal) return false;
  if (digits.size() > kMostExact) return true;
  std::string held = fmt::format("{:.{}e}", std::abs(*value), digits.size() - 1);
  held.resize(held.find('e'));
  std::erase(held, '.');
  return held != digits;
}

void AppendDecimal(const arrow::Decimal256& value, int scale, std::string* out) {
  Words words = value.little_endian_array();
  const bool negative = (words[3] >> 63) != 0;
  if (negative) Negate(&words);
  AppendWords(words, negative, scale, out);
}

void AppendDecimal(const arrow::Decimal128& value, int scale, std::string* out) { AppendDecimal(arrow::Decimal256(value), scale, out); }

arrow::Result<arrow::Decimal256> ParseDecimal(std::string_view text, int precision, int scale, DecimalRounding rounding) {
  thread_local DecimalParts parts;  // keeps its buffer from value to value
  if (!TakeApart(text, &parts)) return NoNumber(text, "decimal number");
  const auto does_not_fit = [&] {
    return arrow::Status::Invalid(precision >= 76
                                      ? fmt::format("{} is beyond the range of BIGNUMERIC", Quoted(text))
                                      : fmt::format("{} has more than {} digits before the point", Quoted(text), precision - scale));
  };
  uint64_t up = 0;
  if (!parts.digits.empty()) {
    const int64_t shift = parts.exponent + scale;
    if (shift > 0) {
      if (static_cast<int64_t>(parts.digits.size()) + shift > static_cast<int64_t>(kMaxDigits)) return does_not_fit();
      parts.digits.append(static_cast<size_t>(shift), '0');
    } else if (shift < 0) {
      auto cut = Cut(&parts.digits, -shift, rounding);
      if (!cut) {
        return arrow::Status::Invalid(
            fmt::format("{} has more than {} digits after the point; a rounding can be asked for", Quoted(text), scale));
      }
      up = *cut ? 1 : 0;
    }
  }
  Words words{};
  if (parts.digits.size() > kMaxDigits || !Magnitude(parts.digits, up, &words)) return does_not_fit();
  const Words smallest = {0, 0, 0, uint64_t{1} << 63};
  if ((words[3] >> 63) != 0 && !(parts.negative && words == smallest)) return does_not_fit();
  if (precision < 76) {
    const Words& bound = PowerOfTen(precision);
    if (!std::lexicographical_compare(words.rbegin(), words.rend(), bound.rbegin(), bound.rend())) return does_not_fit();
  }
  if (parts.negative) Negate(&words);
  return arrow::Decimal256(arrow::Decimal256::LittleEndianArray, words);
}

void AppendBase64(std::string_view bytes, std::string* out) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])); };
  size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const char text[] = {kBase64[group >> 18], kBase64[group >> 12 & 63], kBase64[group >> 6 & 63], kBase64[group & 63]};
    out->append(text, sizeof(text));
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const uint32_t group = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
  const char text[] = {kBase64[group >> 18], kBase64[group >> 12 & 63], two ? kBase64[group >> 6 & 63] : '=', '='};
  out->append(text, sizeof(text));
}

arrow::Status ParseBase64(std::string_view text, std::string* bytes) {
  const size_t before = bytes->size();
  const auto wrong = [&] {
    bytes->resize(before);
    return NoNumber(text, "base64 text: the standard alphabet with padding is wanted");
  };
  if (text.size() % 4 != 0) return wrong();
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t padding = !last || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int8_t value = k < 4 - padding ? kReverseBase64[static_cast<unsigned char>(text[i + k])] : int8_t{0};
      if (value < 0) return wrong();
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k < 3 - padding; ++k) bytes->push_back(static_cast<char>(group >> (16 - 8 * k) & 0xFF));
  }
  return arrow::Status::OK();
}

std::string Quoted(std::string_view value) {
  constexpr size_t kShown = 60;
  std::string_view shown = value.substr(0, kShown);
  if (shown.size() < value.size()) {
    // Not in the middle of a character.
    while (!shown.empty() && (static_cast<unsigned char>(value[shown.size()]) & 0xC0) == 0x80) shown.remove_suffix(1);
  }
  const bool cut = shown.size() < value.size();
  std::string out = "'";
  while (!shown.empty()) {
    const size_t length = CharacterLength(shown);
    const auto first = static_cast<unsigned char>(shown[0]);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += fmt::format("\\x{:02X}", first);
      shown.remove_prefix(1);
    } else {
      out += shown.substr(0, length);
      shown.remove_prefix(length);
    }
  }
  out += cut ? "'..." : "'";
  return out;
}

}  // namespace headrace
