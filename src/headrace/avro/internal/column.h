// One Arrow column while it is being filled: raw buffers, written by the decoder's loop without a builder between.
//
// A Column is used by one thread. Reserve makes room for values (their bits, their numbers, their offsets), ReserveData for bytes of text;
// writing beyond that room is the caller's fault. A slot of a null is zero or empty. The validity bits exist from the first null on only.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/type.h>

namespace headrace::avro {

/// Bytes that one Decode may still reserve.
struct ReserveBudget {
  int64_t left = 0;
};

enum class Shape {
  kBits,     // bool
  kFixed,    // numbers, dates, decimals
  kText,     // offsets and bytes
  kList,     // offsets
  kValidity  // structs
};

class Column {
 public:
  Column(Shape shape, int width, arrow::MemoryPool* pool) : shape_(shape), width_(width), pool_(pool) {}

  /// Empty again, with new buffers: those of the last batch belong to its arrays.
  void Reset(ReserveBudget* budget);
  /// Room for `capacity` values in all.
  arrow::Status Reserve(int64_t capacity);
  /// Room for `more` bytes behind those there are, and 16 more that a copy may overshoot by.
  arrow::Status ReserveData(int64_t more);
  /// Makes the buffers' sizes those of the values. `children` are those of a struct or list.
  arrow::Result<std::shared_ptr<arrow::ArrayData>> Finish(std::shared_ptr<arrow::DataType> type,
                                                          std::vector<std::shared_ptr<arrow::ArrayData>> children);

  template <typename T>
  void Append(T value) {
    reinterpret_cast<T*>(values)[length++] = value;
  }
  void AppendBit(bool value) {
    values[length >> 3] = static_cast<uint8_t>(values[length >> 3] | (value ? 1 << (length & 7) : 0));
    ++length;
  }
  void AppendOffset(int64_t end) { reinterpret_cast<int32_t*>(values)[++length] = static_cast<int32_t>(end); }
  const int32_t* offsets() const { return reinterpret_cast<const int32_t*>(values); }
  bool IsNull(int64_t index) const { return validity != nullptr && (validity[index >> 3] & (1 << (index & 7))) == 0; }

  /// A zero or empty value, for a slot that nobody may look at.
  void AppendZero() {
    switch (shape_) {
      case Shape::kBits:
        ++length;  // it is zero already
        return;
      case Shape::kFixed:
        if (width_ == sizeof(int64_t)) {
          Append(int64_t{0});
          return;
        }
        std::memset(values + length * width_, 0, static_cast<size_t>(width_));
        ++length;
        return;
      case Shape::kText:
      case Shape::kList:
        AppendOffset(offsets()[length]);
        return;
      case Shape::kValidity:
        ++length;
    }
  }
  /// Before the first null.
  arrow::Status ReserveValidity();
  void AppendNull() {
    validity[length >> 3] = static_cast<uint8_t>(validity[length >> 3] & ~(1 << (length & 7)));
    ++null_count;
    AppendZero();
  }

  // What the loop writes through.
  uint8_t* values = nullptr;
  uint8_t* data = nullptr;
  uint8_t* validity = nullptr;
  int64_t length = 0;
  int64_t capacity = 0;
  int64_t data_size = 0;
  int64_t data_capacity = 0;
  int64_t null_count = 0;

 private:
  int64_t ValueBytes(int64_t count) const;
  arrow::Status Resize(std::shared_ptr<arrow::ResizableBuffer>* buffer, int64_t bytes);

  Shape shape_;
  int width_;
  arrow::MemoryPool* pool_;
  ReserveBudget* budget_ = nullptr;
  std::shared_ptr<arrow::ResizableBuffer> values_buffer_;
  std::shared_ptr<arrow::ResizableBuffer> data_buffer_;
  std::shared_ptr<arrow::ResizableBuffer> validity_buffer_;
};

}  // namespace headrace::avro
