#include "headrace/avro/decoder.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "headrace/avro/internal/machine.h"
#include "headrace/avro/internal/program.h"
#include "headrace/types/column_scan.h"
#include "headrace/types/utf8.h"
#include "headrace/types/value_text.h"

namespace headrace::avro {
namespace {

arrow::Status CannotHold(std::string message) {
  return MakeError({.code = Code::kDataLoss, .reason = "BAD_AVRO_DATA"}, std::move(message));
}

// The index of the first value outside [first, last], or -1. The slots of nulls are zero, which is in every range.
template <typename T>
int64_t FirstOutside(const T* values, int64_t length, T first, T last) {
  if (AreWithin(std::span(values, static_cast<size_t>(length)), first, last)) return -1;
  return std::find_if(values, values + length, [&](T value) { return value < first || value > last; }) - values;
}

// The index of the first text that is no UTF-8, or -1.
int64_t FirstInvalid(const Column& column) {
  const int32_t* offsets = column.offsets();
  const auto* data = reinterpret_cast<const char*>(column.data);
  if (AreUtf8(data, {offsets, static_cast<size_t>(column.length) + 1})) return -1;
  for (int64_t i = 0; i < column.length; ++i) {
    if (!IsUtf8({data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])})) return i;
  }
  return -1;
}

}  // namespace

class Decoder::Impl {
 public:
  Impl(std::shared_ptr<const Schema> writer, std::shared_ptr<arrow::Schema> target, Program program, arrow::MemoryPool* pool,
       DecoderLimits limits)
      : writer_(std::move(writer)), target_(std::move(target)), program_(std::move(program)), limits_(limits) {
    for (const ColumnPlan& plan : program_.columns) columns_.emplace_back(plan.shape, plan.width, pool);
    machine_ = std::make_unique<Machine>(&program_, &columns_, limits.max_empty_values);
    text_bytes_per_row_.resize(columns_.size());
  }

  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(std::string_view bytes, int64_t row_count, int64_t* used) {
    ARROW_RETURN_NOT_OK(Prepare(bytes, row_count));
    ARROW_RETURN_NOT_OK(machine_->Run(bytes, row_count, &row_ends_));
    if (used != nullptr) *used = row_ends_.empty() ? 0 : row_ends_.back();
    std::vector<std::shared_ptr<arrow::ArrayData>> arrays;
    for (size_t i = 0; i < columns_.size(); ++i) ARROW_RETURN_NOT_OK(CheckValues(i));
    for (const int column : program_.top_columns) {
      ARROW_ASSIGN_OR_RAISE(auto array, Finish(column, row_count));
      arrays.push_back(std::move(array));
    }
    return arrow::RecordBatch::Make(target_, row_count, std::move(arrays));
  }

  const std::vector<uint32_t>& row_ends() const { return row_ends_; }

 private:
  arrow::Status Prepare(std::string_view bytes, int64_t row_count) {
    row_ends_.clear();
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      return MakeError({.code = Code::kResourceExhausted, .reason = "BATCH_TOO_LARGE"}, "more than 2 GiB of Avro rows at once");
    }
    const auto size = static_cast<int64_t>(bytes.size());
    if (row_count < 0 || (!program_.rows_are_empty && row_count > size / std::max<int64_t>(1, program_.min_row_bytes))) {
      return CannotHold(fmt::format("{} bytes cannot hold {} rows", size, row_count));
    }
    budget_.left = limits_.max_batch_bytes;
    if (row_count > budget_.left / static_cast<int64_t>(sizeof(uint32_t))) {
      return MakeError({.code = Code::kResourceExhausted, .reason = "BATCH_TOO_LARGE"}, fmt::format("{} rows at once", row_count));
    }
    row_ends_.reserve(static_cast<size_t>(row_count));
    for (Column& column : columns_) column.Reset(&budget_);
    for (const int column : program_.row_columns) ARROW_RETURN_NOT_OK(columns_[static_cast<size_t>(column)].Reserve(row_count));
    for (size_t i = 0; i < columns_.size(); ++i) {
      ARROW_RETURN_NOT_OK(columns_[i].Reserve(0));  // offsets start with one even when no list ever comes
      // As much text as the last batch had, so that it seldom grows; a guess, so never more than the input has bytes.
      const auto guess = static_cast<int64_t>(text_bytes_per_row_[i] * static_cast<double>(row_count));
      if (guess > 0) ARROW_RETURN_NOT_OK(columns_[i].ReserveData(std::min(guess, size)));
    }
    return arrow::Status::OK();
  }

  // What is cheaper to check for a whole column than value by value.
  arrow::Status CheckValues(size_t index) const {
    const ColumnPlan& plan = program_.columns[index];
    const Column& column = columns_[index];
    const auto* numbers = reinterpret_cast<const int64_t*>(column.values);
    int64_t wrong = -1;
    switch (plan.check) {
      case Check::kNone:
        return arrow::Status::OK();
      case Check::kUtf8:
        wrong = FirstInvalid(column);
        if (wrong < 0) return arrow::Status::OK();
        return Outside(index, wrong, "no valid UTF-8");
      case Check::kDate: {
        const auto* days = reinterpret_cast<const int32_t*>(column.values);
        wrong = FirstOutside(days, column.length, kMinDate, kMaxDate);
        if (wrong < 0) return arrow::Status::OK();
        return Outside(index, wrong, fmt::format("the date {} days after 1970-01-01 is outside 0001-01-01 to 9999-12-31", days[wrong]));
      }
      case Check::kTime:
        wrong = FirstOutside(numbers, column.length, int64_t{0}, kMicrosPerDay - 1);
        if (wrong < 0) return arrow::Status::OK();
        return Outside(index, wrong, fmt::format("{} microseconds are no time of a day", numbers[wrong]));
      case Check::kInstant:
        wrong = FirstOutside(numbers, column.length, kMinTimestamp, kMaxTimestamp);
        if (wrong < 0) return arrow::Status::OK();
        return Outside(index, wrong, fmt::format("{} microseconds after 1970-01-01 are outside 0001-01-01 to 9999-12-31", numbers[wrong]));
      case Check::kInterval:
        return CheckIntervals(index);
    }
    return arrow::Status::OK();
  }

  arrow::Status CheckIntervals(size_t index) const {
    const std::vector<int>& children = program_.columns[index].children;
    const auto* months = reinterpret_cast<const int32_t*>(columns_[static_cast<size_t>(children[0])].values);
    const auto* days = reinterpret_cast<const int32_t*>(columns_[static_cast<size_t>(children[1])].values);
    const auto* micros = reinterpret_cast<const int64_t*>(columns_[static_cast<size_t>(children[2])].values);
    for (int64_t i = 0; i < columns_[index].length; ++i) {
      const IntervalValue value{.months = months[i], .days = days[i], .microseconds = micros[i]};
      if (IntervalInRange(value)) continue;
      return Outside(index, i, fmt::format("{} months, {} days, {} microseconds are no interval", months[i], days[i], micros[i]));
    }
    return arrow::Status::OK();
  }

  // The row follows from the offsets of the lists around the value.
  arrow::Status Outside(size_t index, int64_t value, std::string_view why) const {
    int64_t row = value;
    for (int list = program_.columns[index].parent_list; list >= 0; list = program_.columns[static_cast<size_t>(list)].parent_list) {
      const Column& column = columns_[static_cast<size_t>(list)];
      const int32_t* offsets = column.offsets();
      row = std::upper_bound(offsets, offsets + column.length + 1, static_cast<int32_t>(row)) - offsets - 1;
    }
    const std::string& path = program_.columns[index].path;
    ErrorInfo info{.code = Code::kDataLoss, .reason = "VALUE_OUT_OF_RANGE", .row = row, .column = path};
    return MakeError(std::move(info), fmt::format("column {}, row {}: {}", path, row, why));
  }

  arrow::Result<std::shared_ptr<arrow::ArrayData>> Finish(int index, int64_t row_count) {
    const ColumnPlan& plan = program_.columns[static_cast<size_t>(index)];
    std::vector<std::shared_ptr<arrow::ArrayData>> children;
    for (const int child : plan.children) {
      ARROW_ASSIGN_OR_RAISE(auto array, Finish(child, row_count));
      children.push_back(std::move(array));
    }
    Column& column = columns_[static_cast<size_t>(index)];
    if (plan.shape == Shape::kText && row_count > 0) {
      text_bytes_per_row_[static_cast<size_t>(index)] = static_cast<double>(column.data_size) / static_cast<double>(row_count);
    }
    return column.Finish(plan.type, std::move(children));
  }

  std::shared_ptr<const Schema> writer_;
  std::shared_ptr<arrow::Schema> target_;
  Program program_;
  DecoderLimits limits_;
  ReserveBudget budget_;
  std::vector<Column> columns_;
  std::unique_ptr<Machine> machine_;
  std::vector<uint32_t> row_ends_;
  std::vector<double> text_bytes_per_row_;
};

Decoder::Decoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Decoder::~Decoder() = default;

arrow::Result<std::unique_ptr<Decoder>> Decoder::Make(std::shared_ptr<const Schema> writer, std::shared_ptr<arrow::Schema> target,
                                                      arrow::MemoryPool* pool, DecoderLimits limits) {
  ARROW_ASSIGN_OR_RAISE(Program program, Compile(*writer, *target));
  auto impl = std::make_unique<Impl>(std::move(writer), std::move(target), std::move(program), pool, limits);
  return std::unique_ptr<Decoder>(new Decoder(std::move(impl)));
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decoder::Decode(std::string_view bytes, int64_t row_count, int64_t* used) {
  return impl_->Decode(bytes, row_count, used);
}

const std::vector<uint32_t>& Decoder::row_ends() const { return impl_->row_ends(); }

}  // namespace headrace::avro
