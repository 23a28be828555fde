#include "headrace/base/batch_size.h"

#include <arrow/array/data.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/bit_util.h>

namespace headrace {
namespace {

using arrow::ArrayData;

int64_t BitBytes(int64_t first, int64_t length) { return arrow::bit_util::BytesForBits(first + length) - first / 8; }

int64_t Bytes(const ArrayData& data, const arrow::DataType& type, int64_t first, int64_t length);

/// `first` counts from the start of the child's own part.
int64_t ChildBytes(const ArrayData& child, int64_t first, int64_t length) {
  return Bytes(child, *child.type, child.offset + first, length);
}

/// All of it, where no part belongs to rows.
int64_t WholeBytes(const ArrayData& data) {
  int64_t bytes = 0;
  for (const auto& buffer : data.buffers) bytes += buffer == nullptr ? 0 : buffer->size();
  for (const auto& child : data.child_data) bytes += WholeBytes(*child);
  return bytes;
}

template <typename Offset>
int64_t OffsetBytes(const ArrayData& data, int64_t first, int64_t length) {
  if (data.buffers[1] == nullptr || data.buffers[1]->size() == 0) return 0;
  const auto* offsets = reinterpret_cast<const Offset*>(data.buffers[1]->data()) + first;
  const auto bytes = static_cast<int64_t>(offsets[length] - offsets[0]);
  return length * static_cast<int64_t>(sizeof(Offset)) +
         (data.child_data.empty() ? bytes : ChildBytes(*data.child_data[0], static_cast<int64_t>(offsets[0]), bytes));
}

/// Without the null marks. `first` counts from the start of the buffers.
int64_t ValueBytes(const ArrayData& data, const arrow::DataType& type, int64_t first, int64_t length) {
  switch (type.id()) {
    case arrow::Type::NA:
      return 0;
    case arrow::Type::BOOL:
      return BitBytes(first, length);
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      return OffsetBytes<int32_t>(data, first, length);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::LARGE_LIST:
      return OffsetBytes<int64_t>(data, first, length);
    case arrow::Type::STRUCT: {
      int64_t bytes = 0;
      for (const auto& child : data.child_data) bytes += ChildBytes(*child, first, length);
      return bytes;
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const int64_t each = static_cast<const arrow::FixedSizeListType&>(type).list_size();
      return ChildBytes(*data.child_data[0], first * each, length * each);
    }
    case arrow::Type::DICTIONARY: {
      const int64_t indexes = ValueBytes(data, *static_cast<const arrow::DictionaryType&>(type).index_type(), first, length);
      return indexes + (data.dictionary == nullptr ? 0 : ChildBytes(*data.dictionary, 0, data.dictionary->length));
    }
    default:
      return length * type.byte_width();
  }
}

int64_t Bytes(const ArrayData& data, const arrow::DataType& type, int64_t first, int64_t length) {
  if (type.id() == arrow::Type::EXTENSION) {
    return Bytes(data, *static_cast<const arrow::ExtensionType&>(type).storage_type(), first, length);
  }
  if (IsUnusual(type.id())) return WholeBytes(data);
  const bool marked = arrow::internal::may_have_validity_bitmap(type.id()) && !data.buffers.empty() && data.buffers[0] != nullptr;
  return ValueBytes(data, type, first, length) + (marked ? BitBytes(first, length) : 0);
}

}  // namespace

bool IsUnusual(arrow::Type::type id) {
  switch (id) {
    case arrow::Type::SPARSE_UNION:
    case arrow::Type::DENSE_UNION:
    case arrow::Type::RUN_END_ENCODED:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
      return true;
    default:
      return false;
  }
}

int64_t ReferencedBytes(const arrow::RecordBatch& batch) {
  int64_t bytes = 0;
  for (int i = 0; i < batch.num_columns(); ++i) {
    const ArrayData& column = *batch.column_data(i);
    bytes += Bytes(column, *column.type, column.offset, column.length);
  }
  return bytes;
}

}  // namespace headrace
