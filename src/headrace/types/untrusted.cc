#include "headrace/types/untrusted.h"

#include <span>

#include <arrow/array.h>
#include <arrow/extension_type.h>

#include "headrace/base/batch_size.h"
#include "headrace/types/column_scan.h"

namespace headrace {
namespace {

template <typename Offset>
arrow::Status CheckOffsets(const arrow::ArrayData& data, int64_t limit) {
  if (data.length == 0) return arrow::Status::OK();
  const auto* offsets = data.GetValues<Offset>(1);
  if (offsets == nullptr) return arrow::Status::Invalid("a column has no offsets");
  const bool ordered = AreOrdered(std::span(offsets, static_cast<size_t>(data.length) + 1));
  if (ordered && static_cast<int64_t>(offsets[data.length]) <= limit) return arrow::Status::OK();
  return arrow::Status::Invalid("offsets of a column are out of order or beyond its data");
}

arrow::Status CheckContent(const arrow::ArrayData& data);

arrow::Status CheckChildren(const arrow::ArrayData& data) {
  for (const auto& child : data.child_data) ARROW_RETURN_NOT_OK(CheckContent(*child));
  return arrow::Status::OK();
}

/// Indexes by Arrow's own check, over a dictionary of the same length whose values have nothing to be wrong.
arrow::Status CheckDictionary(const arrow::ArrayData& data) {
  if (data.dictionary == nullptr) return arrow::Status::Invalid("a column has no dictionary");
  const auto& type = static_cast<const arrow::DictionaryType&>(*data.type);
  auto indexes = data.Copy();
  indexes->type = arrow::dictionary(type.index_type(), arrow::null(), type.ordered());
  indexes->dictionary = arrow::ArrayData::Make(arrow::null(), data.dictionary->length, {nullptr}, data.dictionary->length);
  ARROW_RETURN_NOT_OK(arrow::MakeArray(indexes)->ValidateFull());
  return CheckContent(*data.dictionary);
}

/// After Validate(): buffers have the sizes that lengths ask for.
arrow::Status CheckContent(const arrow::ArrayData& data) {
  const auto data_bytes = [&] { return data.buffers[2] == nullptr ? int64_t{0} : data.buffers[2]->size(); };
  switch (data.type->id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return CheckOffsets<int32_t>(data, data_bytes());
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return CheckOffsets<int64_t>(data, data_bytes());
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      ARROW_RETURN_NOT_OK(CheckOffsets<int32_t>(data, data.child_data[0]->length));
      return CheckChildren(data);
    case arrow::Type::LARGE_LIST:
      ARROW_RETURN_NOT_OK(CheckOffsets<int64_t>(data, data.child_data[0]->length));
      return CheckChildren(data);
    case arrow::Type::STRUCT:
    case arrow::Type::FIXED_SIZE_LIST:
      return CheckChildren(data);
    case arrow::Type::DICTIONARY:
      return CheckDictionary(data);
    case arrow::Type::EXTENSION: {
      auto storage = data.Copy();
      storage->type = static_cast<const arrow::ExtensionType&>(*data.type).storage_type();
      return CheckContent(*storage);
    }
    default:
      if (IsUnusual(data.type->id())) return arrow::MakeArray(data.Copy())->ValidateFull();
      return arrow::Status::OK();  // fixed width: nothing is followed
  }
}

void Forget(arrow::ArrayData* data) {
  if (!data->buffers.empty() && data->buffers[0] != nullptr) data->null_count = arrow::kUnknownNullCount;
  for (const auto& child : data->child_data) Forget(child.get());
  if (data->dictionary != nullptr) Forget(data->dictionary.get());
}

}  // namespace

arrow::Status CheckUntrusted(const arrow::RecordBatch& batch) {
  ARROW_RETURN_NOT_OK(batch.Validate());
  for (int i = 0; i < batch.num_columns(); ++i) {
    const auto valid = CheckContent(*batch.column_data(i));
    if (!valid.ok()) return valid.WithMessage("column ", batch.schema()->field(i)->name(), ": ", valid.message());
  }
  return arrow::Status::OK();
}

void ForgetNullCounts(const arrow::RecordBatch& batch) {
  for (int i = 0; i < batch.num_columns(); ++i) Forget(batch.column_data(i).get());
}

}  // namespace headrace
