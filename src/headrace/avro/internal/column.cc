#include "headrace/avro/internal/column.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/base/error.h"

namespace headrace::avro {
namespace {

int64_t BytesOfBits(int64_t bits) { return (bits + 7) / 8; }

arrow::Status TooLarge(const char* what) { return MakeError({.code = Code::kResourceExhausted, .reason = "BATCH_TOO_LARGE"}, what); }

}  // namespace

void Column::Reset(ReserveBudget* budget) {
  budget_ = budget;
  values_buffer_.reset();
  data_buffer_.reset();
  validity_buffer_.reset();
  values = data = validity = nullptr;
  length = capacity = data_size = data_capacity = null_count = 0;
}

int64_t Column::ValueBytes(int64_t count) const {
  switch (shape_) {
    case Shape::kBits:
      return BytesOfBits(count);
    case Shape::kFixed:
      return count * width_;
    case Shape::kText:
    case Shape::kList:
      return (count + 1) * static_cast<int64_t>(sizeof(int32_t));
    case Shape::kValidity:
      break;
  }
  return 0;
}

arrow::Status Column::Resize(std::shared_ptr<arrow::ResizableBuffer>* buffer, int64_t bytes) {
  const int64_t before = *buffer == nullptr ? 0 : (*buffer)->size();
  if (bytes - before > budget_->left) return TooLarge("the rows take more memory as columns than one batch may; decode fewer rows at once");
  budget_->left -= bytes - before;
  if (*buffer != nullptr) return (*buffer)->Resize(bytes, false);
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> made, arrow::AllocateResizableBuffer(bytes, pool_));
  *buffer = std::move(made);
  return arrow::Status::OK();
}

arrow::Status Column::Reserve(int64_t wanted) {
  if (wanted <= capacity && values_buffer_ != nullptr) return arrow::Status::OK();
  if (wanted > std::numeric_limits<int32_t>::max() - 1)
    return TooLarge("a batch holds at most 2^31 values of a column; decode fewer rows at once");
  const int64_t grown = std::max(wanted, std::min<int64_t>(capacity * 2, std::numeric_limits<int32_t>::max() - 1));
  const bool first = values_buffer_ == nullptr;
  const int64_t bytes = ValueBytes(grown);
  const int64_t before = first ? 0 : values_buffer_->size();
  ARROW_RETURN_NOT_OK(Resize(&values_buffer_, bytes));
  values = values_buffer_->mutable_data();
  // Bits are set one by one, so they start as zero; offsets start with one.
  if (shape_ == Shape::kBits) std::memset(values + before, 0, static_cast<size_t>(bytes - before));
  if (first && (shape_ == Shape::kText || shape_ == Shape::kList)) *reinterpret_cast<int32_t*>(values) = 0;
  if (validity != nullptr) {
    const int64_t had = validity_buffer_->size();
    ARROW_RETURN_NOT_OK(Resize(&validity_buffer_, std::max(had, BytesOfBits(grown))));
    validity = validity_buffer_->mutable_data();
    std::memset(validity + had, 0xFF, static_cast<size_t>(validity_buffer_->size() - had));
  }
  capacity = grown;
  return arrow::Status::OK();
}

arrow::Status Column::ReserveData(int64_t more) {
  constexpr int64_t kOvershoot = 16;
  constexpr int64_t kLeast = 256;
  if (data_size + more > std::numeric_limits<int32_t>::max())
    return TooLarge("a batch holds at most 2^31 bytes of a column; decode fewer rows at once");
  const int64_t wanted = data_size + more + kOvershoot;
  if (wanted <= data_capacity) return arrow::Status::OK();
  const int64_t grown = std::max({wanted, data_capacity * 2, kLeast});
  ARROW_RETURN_NOT_OK(Resize(&data_buffer_, grown));
  data = data_buffer_->mutable_data();
  data_capacity = grown;
  return arrow::Status::OK();
}

arrow::Status Column::ReserveValidity() {
  ARROW_RETURN_NOT_OK(Resize(&validity_buffer_, std::max<int64_t>(1, BytesOfBits(capacity))));
  validity = validity_buffer_->mutable_data();
  std::memset(validity, 0xFF, static_cast<size_t>(validity_buffer_->size()));
  return arrow::Status::OK();
}

arrow::Result<std::shared_ptr<arrow::ArrayData>> Column::Finish(std::shared_ptr<arrow::DataType> type,
                                                                std::vector<std::shared_ptr<arrow::ArrayData>> children) {
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  if (validity_buffer_ != nullptr) ARROW_RETURN_NOT_OK(validity_buffer_->Resize(BytesOfBits(length), false));
  buffers.push_back(std::move(validity_buffer_));
  if (shape_ != Shape::kValidity) {
    ARROW_RETURN_NOT_OK(values_buffer_->Resize(ValueBytes(length), false));
    buffers.push_back(std::move(values_buffer_));
  }
  if (shape_ == Shape::kText) {
    if (data_buffer_ == nullptr) ARROW_RETURN_NOT_OK(ReserveData(0));
    ARROW_RETURN_NOT_OK(data_buffer_->Resize(data_size, false));
    buffers.push_back(std::move(data_buffer_));
  }
  return arrow::ArrayData::Make(std::move(type), length, std::move(buffers), std::move(children), null_count);
}

}  // namespace headrace::avro
