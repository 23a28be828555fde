#include "headrace/avro/internal/machine.h"

#include <array>
#include <bit>
#include <utility>

#include <arrow/util/decimal.h>
#include <fmt/format.h>

#include "headrace/avro/internal/skip.h"
#include "headrace/avro/internal/usual_datetime.h"
#include "headrace/avro/internal/varint.h"
#include "headrace/base/error.h"
#include "headrace/types/value_text.h"

namespace headrace::avro {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// Texts longer than this are copied by memcpy; shorter ones in one move of this size, where both sides have room for it.
constexpr int64_t kShortText = 16;
// A value in an error text.
constexpr size_t kShownBytes = 64;

// Two's complement, most significant byte first, into the four words of a 256-bit number. False when it has more bits than that.
bool LoadBigEndian(const uint8_t* data, int64_t size, std::array<uint64_t, 4>* words) {
  const uint8_t sign = size > 0 && data[0] >= 0x80 ? 0xFF : 0;
  constexpr int64_t kBytes = 32;
  for (; size > kBytes; ++data, --size) {
    if (*data != sign) return false;
  }
  if (size == kBytes && ((data[0] ^ sign) & 0x80) != 0) return false;
  words->fill(sign == 0 ? 0 : ~uint64_t{0});
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = size - 1 - i;
    auto& word = (*words)[static_cast<size_t>(place / 8)];
    const int shift = static_cast<int>(place % 8) * 8;
    word = (word & ~(uint64_t{0xFF} << shift)) | (uint64_t{data[i]} << shift);
  }
  return true;
}

// The longest text whose length is one byte; such a text is copied by moves of kShortText.
constexpr int64_t kOneByteText = 63;
// No quick step reads more bytes: the branch of a union, a text's length, and the moves that copy it.
constexpr int64_t kQuickBytes = 2 + kOneByteText + 1;
static_assert(kQuickBytes >= 1 + kLongestLong);

// One step, of those that nearly all columns are made of, where kQuickBytes are left: answers the byte after it. Null, and nothing is done,
// when it is anything else, for the loop to look at.
__attribute__((always_inline)) inline const uint8_t* Quick(const Op& op, const uint8_t* at) {
  if (op.value_branch >= 0) {
    if (*at != op.value_byte) {
      // Before its first null a column has no validity bits.
      if (!op.null_is_plain || *at != op.null_byte || op.target->validity == nullptr) return nullptr;
      op.target->AppendNull();
      return at + 1;
    }
    ++at;
  }
  int64_t number = 0;
  switch (op.code) {
    case OpCode::kBool:
      if (*at > 1) return nullptr;
      op.target->AppendBit(*at != 0);
      return at + 1;
    case OpCode::kInt32:
      at = ReadLongUnchecked(at, &number);
      if (at == nullptr || number != static_cast<int32_t>(number)) return nullptr;
      op.target->Append(static_cast<int32_t>(number));
      return at;
    case OpCode::kInt64:
      at = ReadLongUnchecked(at, &number);
      if (at == nullptr) return nullptr;
      op.target->Append(number);
      return at;
    case OpCode::kDouble: {
      double value = 0;
      std::memcpy(&value, at, sizeof value);
      op.target->Append(value);
      return at + sizeof value;
    }
    case OpCode::kText: {
      Column& column = *op.target;
      const unsigned coded = *at++;
      // Lengths of more than one byte, and negative ones, which are odd.
      if ((coded & 0x81) != 0 || column.data_capacity - column.data_size <= kOneByteText) return nullptr;
      const int64_t size = coded >> 1;
      uint8_t* to = column.data + column.data_size;
      std::memcpy(to, at, kShortText);
      if (size > kShortText) std::memcpy(to + kShortText, at + kShortText, kOneByteText + 1 - kShortText);
      column.data_size += size;
      column.AppendOffset(column.data_size);
      return at + size;
    }
    default:
      return nullptr;
  }
}

}  // namespace

Machine::Machine(const Program* program, std::vector<Column>* columns, int64_t max_empty_values)
    : program_(*program), ops_(program->ops), columns_(*columns), max_empty_values_(max_empty_values) {
  // One byte holds any branch's number that a union of two can have.
  const auto coded = [](int8_t branch) { return static_cast<uint8_t>(branch < 0 ? 0 : branch * 2); };
  for (size_t step = 0; step < ops_.size(); ++step) {
    Op& op = ops_[step];
    if (op.column >= 0) op.target = &columns_[static_cast<size_t>(op.column)];
    op.value_byte = coded(op.value_branch);
    op.null_byte = coded(op.null_branch);
    op.null_is_plain = op.null_branch >= 0 && op.nullable && !op.list_of_null && op.column >= 0 && static_cast<size_t>(op.end) == step + 1;
  }
}

arrow::Status Machine::Run(std::string_view bytes, int64_t row_count, std::vector<uint32_t>* row_ends) {
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  end_ = begin + bytes.size();
  empty_values_ = 0;
  status_ = arrow::Status::OK();
  const uint8_t* at = begin;
  const size_t last = ops_.size();
  for (row_ = 0; row_ < row_count; ++row_) {
    at = Steps(0, last, at);
    if (at == nullptr) return status_;
    row_ends->push_back(static_cast<uint32_t>(at - begin));
  }
  return arrow::Status::OK();
}

// The loop. It is long because it is one switch; what is rare or long of itself is in functions of its own.
const uint8_t* Machine::Steps(size_t step, size_t last, const uint8_t* at) {
  // Here, since a byte written might be a byte of this object, as far as the compiler knows.
  const uint8_t* const end = end_;
  const Op* const ops = ops_.data();
  const Op* const stop = ops + last;
  for (const Op* here = ops + step; here < stop;) {
    const Op& op = *here;
    if (end - at >= kQuickBytes) {
      if (const uint8_t* next = Quick(op, at); next != nullptr) {
        at = next;
        ++here;
        continue;
      }
    }
    if (op.value_branch >= 0) {
      if (at != end && *at == op.value_byte) {
        ++at;
      } else {
        bool null = false;
        at = Branch(op, at, &null);
        if (at == nullptr) return nullptr;
        if (null) {
          if (!Null(StepOf(op))) return nullptr;
          here = ops + op.end;
          continue;
        }
      }
    }
    int64_t number = 0;
    switch (op.code) {
      case OpCode::kAbsent:
        if (!Null(StepOf(op))) return nullptr;
        here = ops + op.end;
        continue;
      case OpCode::kBool:
        if (at == end) return Truncated(op);
        if (*at > 1) return Fail(op, "BAD_AVRO_DATA", fmt::format("{} is no boolean", *at));
        ColumnOf(op).AppendBit(*at++ != 0);
        break;
      case OpCode::kInt32:
      case OpCode::kInt64OfInt:
        at = ReadLong(at, end, &number);
        if (at == nullptr) return Truncated(op);
        if (number != static_cast<int32_t>(number)) return Fail(op, "BAD_AVRO_DATA", fmt::format("{} is no 32-bit integer", number));
        if (op.code == OpCode::kInt32) {
          ColumnOf(op).Append(static_cast<int32_t>(number));
        } else {
          ColumnOf(op).Append(number * op.factor);
        }
        break;
      case OpCode::kInt64:
        at = ReadLong(at, end, &number);
        if (at == nullptr) return Truncated(op);
        ColumnOf(op).Append(number);
        break;
      case OpCode::kInt64Times:
      case OpCode::kInt64Divide:
      case OpCode::kPicosOfLong:
        at = ReadLong(at, end, &number);
        if (at == nullptr) return Truncated(op);
        at = Scaled(op, at, number);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kDoubleOfFloat: {
        float value = 0;
        if (end - at < static_cast<int64_t>(sizeof value)) return Truncated(op);
        std::memcpy(&value, at, sizeof value);
        ColumnOf(op).Append(static_cast<double>(value));
        at += sizeof value;
        break;
      }
      case OpCode::kDouble: {
        double value = 0;
        if (end - at < static_cast<int64_t>(sizeof value)) return Truncated(op);
        std::memcpy(&value, at, sizeof value);
        ColumnOf(op).Append(value);
        at += sizeof value;
        break;
      }
      case OpCode::kText:
        at = ReadLong(at, end, &number);
        if (at == nullptr || number < 0 || number > end - at) return Truncated(op);
        at = Fixed(op, at + number, at, number);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kTextOfFixed:
        if (op.factor > end - at) return Truncated(op);
        at = Fixed(op, at + op.factor, at, op.factor);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kTextOfEnum:
        at = Enum(op, at);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kDecimal:
        at = ReadLong(at, end, &number);
        if (at == nullptr || number < 0 || number > end - at) return Truncated(op);
        at = Decimal(op, at, number);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kDecimalOfFixed:
        if (op.factor > end - at) return Truncated(op);
        at = Decimal(op, at, op.factor);
        if (at == nullptr) return nullptr;
        break;
      case OpCode::kDateOfText:
      case OpCode::kTimeOfText:
      case OpCode::kDatetimeOfText:
      case OpCode::kTimestampOfText:
      case OpCode::kPicosOfText:
      case OpCode::kIntervalOfText:
        at = Civil(StepOf(op), at);
        if (at == nullptr) return nullptr;
        here = ops + op.end;
        continue;
      case OpCode::kStruct:
        ++ColumnOf(op).length;
        break;
      case OpCode::kList:
        at = List(StepOf(op), at);
        if (at == nullptr) return nullptr;
        here = ops + op.end;
        continue;
      case OpCode::kSkipNumber:
        at = ReadLong(at, end, &number);
        if (at == nullptr) return Truncated(op);
        break;
      case OpCode::kSkipSized:
        at = ReadLong(at, end, &number);
        if (at == nullptr || number < 0 || number > end - at) return Truncated(op);
        at += number;
        break;
      case OpCode::kSkipBytes:
        if (op.factor > end - at) return Truncated(op);
        at += op.factor;
        break;
      case OpCode::kSkipValue:
        at = SkipValue(*op.node, at, end);
        if (at == nullptr) return Truncated(op);
        break;
    }
    ++here;
  }
  return at;
}

// A branch that is not the value's in one byte: null, a number in more bytes than needed, or nonsense.
const uint8_t* Machine::Branch(const Op& op, const uint8_t* at, bool* null) {
  int64_t branch = 0;
  at = ReadLong(at, end_, &branch);
  if (at == nullptr) return Truncated(op);
  if (branch == op.value_branch) return at;
  *null = op.null_branch >= 0 && branch == op.null_branch;
  return *null ? at : Fail(op, "BAD_AVRO_DATA", fmt::format("the union has no branch {}", branch));
}

const uint8_t* Machine::List(size_t step, const uint8_t* at) {
  const Op& op = ops_[step];
  const auto last = static_cast<size_t>(op.end);
  while (true) {
    int64_t count = 0;
    at = ReadLong(at, end_, &count);
    if (at == nullptr) return Truncated(op);
    if (count == 0) break;
    if (count < 0) {  // the block's size in bytes follows, which only a reader that skips needs
      int64_t size = 0;
      at = ReadLong(at, end_, &size);
      if (at == nullptr || size < 0 || size > end_ - at || count == INT64_MIN) return Truncated(op);
      count = -count;
    }
    if (op.empty_elements) {
      if (count > max_empty_values_ - empty_values_) {
        Keep(op, MakeError({.code = Code::kResourceExhausted, .reason = "BATCH_TOO_LARGE"},
                           fmt::format("more than {} array elements that take no bytes", max_empty_values_)));
        return nullptr;
      }
      empty_values_ += count;
    } else if (count > (end_ - at) / (op.min_bytes > 0 ? op.min_bytes : 1)) {
      return Truncated(op);
    }
    if (!ReserveElements(op, count)) return nullptr;
    for (int64_t i = 0; i < count; ++i) {
      at = Steps(step + 1, last, at);
      if (at == nullptr) return nullptr;
    }
  }
  ColumnOf(op).AppendOffset(columns_[static_cast<size_t>(op.element_column)].length);
  return at;
}

bool Machine::ReserveElements(const Op& op, int64_t count) {
  const Column& element = columns_[static_cast<size_t>(op.element_column)];
  if (count <= element.capacity - element.length) return true;
  for (const int column : program_.groups[static_cast<size_t>(op.group)]) {
    Column& grown = columns_[static_cast<size_t>(column)];
    if (!Keep(op, grown.Reserve(grown.length + count))) return false;
  }
  return true;
}

// Appends `size` bytes at `data`, which end before the input does, and answers `next`.
const uint8_t* Machine::Fixed(const Op& op, const uint8_t* next, const uint8_t* data, int64_t size) {
  Column& column = ColumnOf(op);
  if (column.data_capacity - column.data_size < size + kShortText && !Keep(op, column.ReserveData(size))) return nullptr;
  if (size <= kShortText && end_ - data >= kShortText) {
    std::memcpy(column.data + column.data_size, data, kShortText);
  } else {
    std::memcpy(column.data + column.data_size, data, static_cast<size_t>(size));
  }
  column.data_size += size;
  column.AppendOffset(column.data_size);
  return next;
}

const uint8_t* Machine::Enum(const Op& op, const uint8_t* at) {
  int64_t index = 0;
  at = ReadLong(at, end_, &index);
  if (at == nullptr) return Truncated(op);
  if (index < 0 || index >= static_cast<int64_t>(op.node->symbols.size())) {
    return Fail(op, "BAD_AVRO_DATA", fmt::format("the enum {} has no symbol {}", op.node->full_name, index));
  }
  return AppendText(op, op.node->symbols[static_cast<size_t>(index)]) ? at : nullptr;
}

const uint8_t* Machine::Decimal(const Op& op, const uint8_t* data, int64_t size) {
  constexpr int64_t kWord = sizeof(uint64_t);
  const DecimalPlan& plan = program_.decimals[static_cast<size_t>(op.decimal)];
  if (size < 1 || size > kWord || plan.rescale) return WideDecimal(op, data, size);
  // Up to eight bytes, most significant first, as the sign-extended number that they are.
  uint64_t bits = 0;
  if (end_ - data >= kWord) {
    std::memcpy(&bits, data, sizeof bits);
    bits = __builtin_bswap64(bits);
  } else {
    for (int64_t i = 0; i < size; ++i) bits |= static_cast<uint64_t>(data[i]) << (56 - 8 * i);
  }
  const int64_t value = static_cast<int64_t>(bits) >> (8 * (kWord - size));
  if (value > plan.small_limit || value < -plan.small_limit) return WideDecimal(op, data, size);
  Column& column = ColumnOf(op);
  int64_t words[4] = {value, value >> 63, value >> 63, value >> 63};
  if (op.width == 16) {
    std::memcpy(column.values + column.length * 16, words, 16);
  } else {
    std::memcpy(column.values + column.length * 32, words, 32);
  }
  ++column.length;
  return data + size;
}

const uint8_t* Machine::WideDecimal(const Op& op, const uint8_t* data, int64_t size) {
  const DecimalPlan& plan = program_.decimals[static_cast<size_t>(op.decimal)];
  std::array<uint64_t, 4> words{};
  bool fits = LoadBigEndian(data, size, &words);
  arrow::BasicDecimal256 value(arrow::BasicDecimal256::LittleEndianArray, words);
  if (fits && plan.rescale) {
    const arrow::BasicDecimal256 scaled = value * plan.multiplier;
    fits = scaled / plan.multiplier == value;
    value = scaled;
  }
  if (fits && plan.check_precision) fits = !(value > plan.limit) && !(value < -plan.limit);
  if (!fits) {
    std::string digits;
    for (int64_t i = 0; i < size && i < static_cast<int64_t>(kShownBytes); ++i) digits += fmt::format("{:02x}", data[i]);
    return Fail(
        op, "VALUE_OUT_OF_RANGE",
        fmt::format("the decimal 0x{} has more digits than {}", digits, program_.columns[static_cast<size_t>(op.column)].type->ToString()));
  }
  Column& column = ColumnOf(op);
  const auto& native = value.native_endian_array();
  std::memcpy(column.values + column.length * op.width, native.data(), op.width);
  ++column.length;
  return data + size;
}

// Appends a text that is made here.
bool Machine::AppendText(const Op& op, std::string_view text) {
  Column& column = ColumnOf(op);
  const auto size = static_cast<int64_t>(text.size());
  if (!Keep(op, column.ReserveData(size))) return false;
  std::memcpy(column.data + column.data_size, text.data(), text.size());
  column.data_size += size;
  column.AppendOffset(column.data_size);
  return true;
}

// A date, time or interval as text.
const uint8_t* Machine::Civil(size_t step, const uint8_t* at) {
  const Op& op = ops_[step];
  int64_t size = 0;
  at = ReadLong(at, end_, &size);
  if (at == nullptr || size < 0 || size > end_ - at) return Truncated(op);
  const std::string_view text(reinterpret_cast<const char*>(at), static_cast<size_t>(size));
  int64_t micros = 0;
  if (op.code == OpCode::kDatetimeOfText && ParseUsualDatetime(text, &micros)) {
    ColumnOf(op).Append(micros);
    return at + size;
  }
  const arrow::Status status = AppendCivil(step, text);
  if (!status.ok()) return status_.ok() ? Fail(op, "VALUE_OUT_OF_RANGE", status.message()) : nullptr;
  return at + size;
}

arrow::Status Machine::AppendCivil(size_t step, std::string_view text) {
  const Op& op = ops_[step];
  switch (op.code) {
    case OpCode::kDateOfText: {
      ARROW_ASSIGN_OR_RAISE(const int32_t days, ParseDate(text));
      ColumnOf(op).Append(days);
      return arrow::Status::OK();
    }
    case OpCode::kTimeOfText: {
      ARROW_ASSIGN_OR_RAISE(const int64_t micros, ParseTime(text));
      ColumnOf(op).Append(micros);
      return arrow::Status::OK();
    }
    case OpCode::kDatetimeOfText: {
      ARROW_ASSIGN_OR_RAISE(const int64_t micros, ParseDatetime(text));
      ColumnOf(op).Append(micros);
      return arrow::Status::OK();
    }
    case OpCode::kTimestampOfText: {
      ARROW_ASSIGN_OR_RAISE(const int64_t micros, ParseTimestamp(text));
      ColumnOf(op).Append(micros);
      return arrow::Status::OK();
    }
    case OpCode::kIntervalOfText: {
      ARROW_ASSIGN_OR_RAISE(const IntervalValue interval, ParseInterval(text));
      ++ColumnOf(op).length;
      // The three columns inside: the steps that follow, in this order.
      ColumnOf(ops_[step + 1]).Append(interval.months);
      ColumnOf(ops_[step + 2]).Append(interval.days);
      ColumnOf(ops_[step + 3]).Append(interval.microseconds);
      return arrow::Status::OK();
    }
    default: {
      ARROW_ASSIGN_OR_RAISE(const PicosTimestamp moment, ParsePicosTimestamp(text));
      scratch_.clear();
      AppendPicosTimestamp(moment, &scratch_);
      return AppendText(op, scratch_) ? arrow::Status::OK() : status_;
    }
  }
}

// An instant in another unit than the column's.
const uint8_t* Machine::Scaled(const Op& op, const uint8_t* at, int64_t value) {
  if (op.code == OpCode::kPicosOfLong) {
    constexpr int64_t kPicosPerSecond = 1'000'000'000'000;
    int64_t seconds = value / op.factor;
    int64_t rest = value % op.factor;
    if (rest < 0) {
      rest += op.factor;
      --seconds;
    }
    if (seconds < kMinTimestamp / kMicrosPerSecond || seconds > kMaxTimestamp / kMicrosPerSecond) {
      return Fail(op, "VALUE_OUT_OF_RANGE", fmt::format("{} is outside 0001-01-01 to 9999-12-31", value));
    }
    scratch_.clear();
    AppendPicosTimestamp({.seconds = seconds, .picoseconds = rest * (kPicosPerSecond / op.factor)}, &scratch_);
    return AppendText(op, scratch_) ? at : nullptr;
  }
  int64_t scaled = 0;
  if (op.code == OpCode::kInt64Times) {
    if (__builtin_mul_overflow(value, op.factor, &scaled)) {
      return Fail(op, "VALUE_OUT_OF_RANGE", fmt::format("{} is outside the column's range", value));
    }
  } else {
    scaled = value / op.factor;
    if (scaled * op.factor != value) {
      return Fail(op, "VALUE_OUT_OF_RANGE", fmt::format("{} has more digits after the point than the column keeps", value));
    }
  }
  ColumnOf(op).Append(scaled);
  return at;
}

bool Machine::Null(size_t step) {
  const Op& op = ops_[step];
  if (op.list_of_null) {
    ColumnOf(op).AppendZero();
    return true;
  }
  if (!op.nullable) {
    Fail(op, "NULL_IN_REQUIRED", "null, but the column is REQUIRED");
    return false;
  }
  if (!AppendNull(op)) return false;
  return static_cast<size_t>(op.end) == step + 1 || NullInside(step);
}

bool Machine::AppendNull(const Op& op) {
  Column& column = ColumnOf(op);
  if (column.validity == nullptr && !Keep(op, column.ReserveValidity())) return false;
  column.AppendNull();
  return true;
}

// The columns inside a struct that is null: null as well, or a value that nobody may look at.
bool Machine::NullInside(size_t step) {
  const auto last = static_cast<size_t>(ops_[step].end);
  for (size_t inside = step + 1; inside < last;) {
    const Op& op = ops_[inside];
    const bool list = op.list_of_null;
    if (op.column >= 0) {
      if (op.nullable && !list) {
        if (!AppendNull(op)) return false;
      } else {
        ColumnOf(op).AppendZero();
      }
    }
    inside = list ? static_cast<size_t>(op.end) : inside + 1;
  }
  return true;
}

const uint8_t* Machine::Fail(const Op& op, std::string_view reason, std::string message) {
  Keep(op, MakeError({.code = Code::kDataLoss, .reason = std::string(reason)}, std::move(message)));
  return nullptr;
}

const uint8_t* Machine::Truncated(const Op& op) {
  return Fail(op, "BAD_AVRO_DATA", "the Avro bytes are cut off or no values of the schema");
}

// Names column and row in an error.
bool Machine::Keep(const Op& op, arrow::Status status) {
  if (status.ok()) return true;
  ErrorInfo info{.code = CodeOf(status)};
  if (const ErrorInfo* known = GetErrorInfo(status)) info = *known;
  info.row = row_;
  if (op.column < 0) {
    status_ = MakeError(std::move(info), fmt::format("row {}: {}", row_, status.message()));
    return false;
  }
  const std::string& path = program_.columns[static_cast<size_t>(op.column)].path;
  info.column = path;
  status_ = MakeError(std::move(info), fmt::format("column {}, row {}: {}", path, row_, status.message()));
  return false;
}

}  // namespace headrace::avro
