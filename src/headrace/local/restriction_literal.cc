#include "headrace/local/restriction_literal.h"

#include <charconv>
#include <chrono>
#include <optional>

#include <arrow/type.h>
#include <arrow/util/decimal.h>
#include <fmt/format.h>

#include "headrace/local/restriction_bound.h"

namespace headrace::local {
namespace {

using Literal = SyntaxNode::Literal;

arrow::Status BadValue(std::string_view type, std::string_view text) {
  constexpr size_t kShown = 100;  // of a text that may be a megabyte
  return arrow::Status::Invalid(fmt::format("Invalid {} literal \"{}\"", type, text.substr(0, kShown)));
}

// Reads fields of digits and single characters from a civil time's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool done() const { return at_ == text_.size(); }
  bool Take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<int64_t> Digits(size_t least, size_t most) {
    size_t begin = at_;
    int64_t value = 0;
    while (!done() && at_ - begin < most && text_[at_] >= '0' && text_[at_] <= '9') value = value * 10 + (text_[at_++] - '0');
    if (at_ - begin < least) return std::nullopt;
    return value;
  }
  std::string_view Rest() const { return text_.substr(at_); }
  size_t at() const { return at_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;

std::optional<int64_t> ScanDays(Scanner* in) {
  auto year = in->Digits(4, 4);
  if (!year || !in->Take('-')) return std::nullopt;
  auto month = in->Digits(1, 2);
  if (!month || !in->Take('-')) return std::nullopt;
  auto day = in->Digits(1, 2);
  if (!day || *year < 1) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)), std::chrono::month(static_cast<unsigned>(*month)),
                                   std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::optional<int64_t> ScanTimeMicros(Scanner* in) {
  auto hour = in->Digits(1, 2);
  if (!hour || !in->Take(':')) return std::nullopt;
  auto minute = in->Digits(1, 2);
  if (!minute || !in->Take(':')) return std::nullopt;
  auto second = in->Digits(1, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  int64_t micros = 0;
  if (in->Take('.')) {
    size_t begin = in->at();
    auto fraction = in->Digits(1, 6);
    if (!fraction) return std::nullopt;
    micros = *fraction;
    for (size_t i = in->at() - begin; i < 6; ++i) micros *= 10;
  }
  return ((*hour * 60 + *minute) * 60 + *second) * kMicrosPerSecond + micros;
}

std::optional<int64_t> ScanDatetimeMicros(Scanner* in) {
  auto days = ScanDays(in);
  if (!days) return std::nullopt;
  int64_t micros = *days * kMicrosPerDay;
  std::string_view rest = in->Rest();
  bool time_follows = rest.size() > 1 && (rest[0] == 'T' || rest[0] == 't' || rest[0] == ' ') && rest[1] >= '0' && rest[1] <= '9';
  if (!time_follows) return micros;
  in->Take(rest[0]);
  auto time = ScanTimeMicros(in);
  if (!time) return std::nullopt;
  return micros + *time;
}

// Nothing, Z, UTC or an offset after a timestamp. Names of other zones are refused by the caller as not a value.
std::optional<int64_t> ScanOffsetMicros(Scanner* in) {
  if (in->done() || ((in->Take('Z') || in->Take('z')) && in->done())) return 0;
  in->Take(' ');
  if (in->Rest() == "UTC") return 0;
  bool negative = in->Take('-');
  if (!negative && !in->Take('+')) return std::nullopt;
  auto hours = in->Digits(1, 2);
  if (!hours || *hours > 14) return std::nullopt;
  int64_t minutes = 0;
  if (in->Take(':')) {
    auto digits = in->Digits(2, 2);
    if (!digits || *digits > 59) return std::nullopt;
    minutes = *digits;
  }
  if (!in->done()) return std::nullopt;
  int64_t micros = (*hours * 60 + minutes) * 60 * kMicrosPerSecond;
  return negative ? -micros : micros;
}

arrow::Result<int64_t> ParseInteger(std::string_view text) {
  bool negative = text.starts_with('-');
  std::string_view digits = negative ? text.substr(1) : text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  }
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  uint64_t most = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (error != std::errc() || end != digits.data() + digits.size() || magnitude > most) return BadValue("integer", text);
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

arrow::Result<double> ParseDouble(std::string_view text) {
  // A number of SQL has no sign of its own; a text that is cast may have one, and be "inf", "infinity" or "nan" in any case.
  std::string_view number = text;
  if (number.starts_with('+') && !number.substr(1).starts_with('-')) number.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || number.ends_with(')')) return BadValue("floating point", text);
  return value;
}

struct ExactDecimal {
  arrow::Decimal256 value;
  int32_t scale = 0;
};

// Null when the number is one, but has more digits than 256 bits hold.
arrow::Result<std::optional<ExactDecimal>> ParseDecimal(const SyntaxNode& literal) {
  std::string text = literal.text;
  if (literal.literal == Literal::kInteger) {
    ARROW_ASSIGN_OR_RAISE(int64_t value, ParseInteger(text));
    return ExactDecimal{arrow::Decimal256(value), 0};
  }
  constexpr size_t kLongest = 200;  // 39 + 38 digits, sign, point and an exponent fit many times
  if (text.size() > kLongest) return std::optional<ExactDecimal>();
  ExactDecimal exact;
  int32_t precision = 0;
  if (!arrow::Decimal256::FromString(text, &exact.value, &precision, &exact.scale).ok()) {
    bool number = text.find_first_not_of("0123456789+-.eE") == std::string::npos && text.find_first_of("0123456789") != std::string::npos;
    if (number && literal.literal == Literal::kFloat) return std::optional<ExactDecimal>();
    return BadValue("NUMERIC", text);
  }
  if (exact.scale < 0) {
    auto scaled = exact.value.Rescale(exact.scale, 0);
    if (!scaled.ok()) return std::optional<ExactDecimal>();
    exact = {*scaled, 0};
  }
  return exact;
}

arrow::Result<std::shared_ptr<arrow::Scalar>> DecimalValue(const SyntaxNode& literal, const std::shared_ptr<arrow::DataType>& type) {
  const auto& decimal = static_cast<const arrow::DecimalType&>(*type);
  ARROW_ASSIGN_OR_RAISE(auto exact, ParseDecimal(literal));
  if (!exact || exact->scale > decimal.scale()) return nullptr;
  auto scaled = exact->value.Rescale(exact->scale, decimal.scale());
  if (!scaled.ok() || !scaled->FitsInPrecision(decimal.precision())) return nullptr;
  if (type->id() == arrow::Type::DECIMAL256) return std::make_shared<arrow::Decimal256Scalar>(*scaled, type);
  const auto words = scaled->little_endian_array();
  return std::make_shared<arrow::Decimal128Scalar>(arrow::Decimal128(static_cast<int64_t>(words[1]), words[0]), type);
}

arrow::Result<std::shared_ptr<arrow::Scalar>> TimeValue(std::string_view text, const std::shared_ptr<arrow::DataType>& type) {
  Scanner in(text);
  if (type->id() == arrow::Type::DATE32) {
    auto days = ScanDays(&in);
    if (!days || !in.done()) return BadValue("DATE", text);
    return std::make_shared<arrow::Date32Scalar>(static_cast<int32_t>(*days));
  }
  if (type->id() == arrow::Type::TIME64) {
    auto micros = ScanTimeMicros(&in);
    if (!micros || !in.done()) return BadValue("TIME", text);
    return std::make_shared<arrow::Time64Scalar>(*micros, type);
  }
  bool zoned = !static_cast<const arrow::TimestampType&>(*type).timezone().empty();
  auto micros = ScanDatetimeMicros(&in);
  if (zoned && micros) {
    auto offset = ScanOffsetMicros(&in);
    if (!offset) return BadValue("TIMESTAMP", text);
    return std::make_shared<arrow::TimestampScalar>(*micros - *offset, type);
  }
  if (!micros || !in.done()) return BadValue(zoned ? "TIMESTAMP" : "DATETIME", text);
  return std::make_shared<arrow::TimestampScalar>(*micros, type);
}

bool IsZoned(const arrow::DataType& type) {
  return type.id() == arrow::Type::TIMESTAMP && !static_cast<const arrow::TimestampType&>(type).timezone().empty();
}

}  // namespace

std::string SqlTypeName(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::INT64:
      return "INT64";
    case arrow::Type::DOUBLE:
      return "FLOAT64";
    case arrow::Type::BOOL:
      return "BOOL";
    case arrow::Type::STRING:
      return "STRING";
    case arrow::Type::BINARY:
      return "BYTES";
    case arrow::Type::DECIMAL128:
      return "NUMERIC";
    case arrow::Type::DECIMAL256:
      return "BIGNUMERIC";
    case arrow::Type::DATE32:
      return "DATE";
    case arrow::Type::TIME64:
      return "TIME";
    case arrow::Type::TIMESTAMP:
      return IsZoned(type) ? "TIMESTAMP" : "DATETIME";
    case arrow::Type::LIST:
      return "ARRAY";
    case arrow::Type::STRUCT:
      return "STRUCT";
    default:
      return type.ToString();
  }
}

std::shared_ptr<arrow::DataType> LiteralType(const SyntaxNode& literal) {
  switch (literal.literal) {
    case Literal::kNull:
    case Literal::kBool:
      return arrow::boolean();
    case Literal::kInteger:
      return arrow::int64();
    case Literal::kFloat:
      return arrow::float64();
    case Literal::kString:
      return arrow::utf8();
    case Literal::kBytes:
      return arrow::binary();
    case Literal::kNumeric:
      return arrow::decimal128(38, 9);
    case Literal::kBigNumeric:
      return arrow::decimal256(76, 38);
    case Literal::kDate:
      return arrow::date32();
    case Literal::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case Literal::kDatetime:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case Literal::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
  }
  return arrow::null();
}

bool Coerces(Literal literal, const arrow::DataType& type) {
  switch (literal) {
    case Literal::kNull:
      return true;
    case Literal::kBool:
      return type.id() == arrow::Type::BOOL;
    case Literal::kInteger:
      return type.id() == arrow::Type::INT64 || type.id() == arrow::Type::DOUBLE || IsDecimal(type);
    case Literal::kFloat:
      return type.id() == arrow::Type::DOUBLE || IsDecimal(type);
    case Literal::kString:
      return type.id() == arrow::Type::STRING || type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::TIME64 ||
             type.id() == arrow::Type::TIMESTAMP;
    case Literal::kBytes:
      return type.id() == arrow::Type::BINARY;
    case Literal::kNumeric:
    case Literal::kBigNumeric:
      return IsDecimal(type);
    case Literal::kDate:
      return type.id() == arrow::Type::DATE32;
    case Literal::kTime:
      return type.id() == arrow::Type::TIME64;
    case Literal::kDatetime:
      return type.id() == arrow::Type::TIMESTAMP && !IsZoned(type);
    case Literal::kTimestamp:
      return IsZoned(type);
  }
  return false;
}

arrow::Result<std::shared_ptr<arrow::Scalar>> LiteralValue(const SyntaxNode& literal, const std::shared_ptr<arrow::DataType>& type) {
  if (literal.literal == Literal::kNull) return arrow::MakeNullScalar(type);
  switch (type->id()) {
    case arrow::Type::BOOL:
      return std::make_shared<arrow::BooleanScalar>(literal.text == "TRUE");
    case arrow::Type::INT64: {
      ARROW_ASSIGN_OR_RAISE(int64_t value, ParseInteger(literal.text));
      return std::make_shared<arrow::Int64Scalar>(value);
    }
    case arrow::Type::DOUBLE: {
      if (literal.literal == Literal::kInteger) {
        ARROW_ASSIGN_OR_RAISE(int64_t value, ParseInteger(literal.text));
        return std::make_shared<arrow::DoubleScalar>(static_cast<double>(value));
      }
      ARROW_ASSIGN_OR_RAISE(double value, ParseDouble(literal.text));
      return std::make_shared<arrow::DoubleScalar>(value);
    }
    case arrow::Type::STRING:
      return std::make_shared<arrow::StringScalar>(literal.text);
    case arrow::Type::BINARY:
      return std::make_shared<arrow::BinaryScalar>(literal.text);
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return DecimalValue(literal, type);
    default:
      return TimeValue(literal.text, type);
  }
}

arrow::Result<std::shared_ptr<arrow::Scalar>> WideDecimal(const SyntaxNode& literal, int32_t scale_at_least) {
  ARROW_ASSIGN_OR_RAISE(auto exact, ParseDecimal(literal));
  constexpr int32_t kMostDigits = 76;  // of decimal256
  if (!exact || exact->scale > kMostDigits) return nullptr;
  return DecimalValue(literal, arrow::decimal256(kMostDigits, std::max(exact->scale, scale_at_least)));
}

}  // namespace headrace::local
