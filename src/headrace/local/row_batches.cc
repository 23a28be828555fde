#include "headrace/local/row_batches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <arrow/array/array_base.h>
#include <arrow/array/data.h>
#include <arrow/array/util.h>
#include <arrow/util/bit_util.h>

#include "headrace/base/batch_size.h"
#include "headrace/types/schema.h"

namespace headrace::local {
namespace {

using Data = std::shared_ptr<arrow::ArrayData>;

// The finalizer of MurmurHash3 on the sum with the next word: fast, and the same over builds and machines.
class Checksum {
 public:
  void Word(uint64_t word) {
    uint64_t x = state_ ^ (word * 0x9E3779B97F4A7C15U);
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDU;
    state_ = x ^ (x >> 29);
  }
  void Bytes(const uint8_t* bytes, int64_t size) {
    Word(static_cast<uint64_t>(size));
    for (; size >= 8; bytes += 8, size -= 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes, 8);
      Word(word);
    }
    if (size == 0) return;
    uint64_t word = 0;
    std::memcpy(&word, bytes, static_cast<size_t>(size));
    Word(word);
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x243F6A8885A308D3U;
};

bool Valid(const arrow::ArrayData& data, int64_t i) {
  return data.buffers[0] == nullptr || arrow::bit_util::GetBit(data.buffers[0]->data(), data.offset + i);
}

void AddValues(const arrow::ArrayData& data, Checksum* sum);

void AddFixedWidth(const arrow::ArrayData& data, Checksum* sum) {
  int64_t width = static_cast<const arrow::FixedWidthType&>(*data.type).bit_width() / 8;
  const uint8_t* values = data.buffers[1] == nullptr ? nullptr : data.buffers[1]->data() + data.offset * width;
  if (data.GetNullCount() == 0) {
    sum->Bytes(values, data.length * width);
    return;
  }
  for (int64_t i = 0; i < data.length; ++i) {
    if (Valid(data, i)) sum->Bytes(values + i * width, width);
  }
}

void AddBinary(const arrow::ArrayData& data, Checksum* sum) {
  const auto* offsets = data.GetValues<int32_t>(1);
  for (int64_t i = 0; i < data.length; ++i) {
    if (Valid(data, i))
      sum->Bytes(data.buffers[2] == nullptr ? nullptr : data.buffers[2]->data() + offsets[i], offsets[i + 1] - offsets[i]);
  }
}

void AddList(const arrow::ArrayData& data, Checksum* sum) {
  if (data.length == 0) return;
  const auto* offsets = data.GetValues<int32_t>(1);
  for (int64_t i = 0; i < data.length; ++i) sum->Word(static_cast<uint64_t>(offsets[i + 1] - offsets[i]));
  AddValues(*data.child_data[0]->Slice(offsets[0], offsets[data.length] - offsets[0]), sum);
}

// What lies under a null struct does not count: only the runs of the others are looked at.
void AddStruct(const arrow::ArrayData& data, Checksum* sum) {
  bool nulls = data.GetNullCount() > 0;
  for (int64_t begin = 0, end = 0; begin < data.length; begin = end) {
    while (begin < data.length && nulls && !Valid(data, begin)) ++begin;
    for (end = nulls ? begin : data.length; end < data.length && Valid(data, end);) ++end;
    if (begin == end) break;
    for (const Data& child : data.child_data) AddValues(*child->Slice(data.offset + begin, end - begin), sum);
  }
}

void AddValues(const arrow::ArrayData& data, Checksum* sum) {
  sum->Word(static_cast<uint64_t>(data.length));
  if (data.GetNullCount() > 0) {
    for (int64_t i = 0; i < data.length; ++i) {
      if (!Valid(data, i)) sum->Word(~static_cast<uint64_t>(i));  // no length and no bit is such a word
    }
  }
  switch (data.type->id()) {
    case arrow::Type::BOOL:
      for (int64_t i = 0; i < data.length; ++i) {
        if (Valid(data, i)) sum->Word(arrow::bit_util::GetBit(data.buffers[1]->data(), data.offset + i) ? 1 : 0);
      }
      break;
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      AddBinary(data, sum);
      break;
    case arrow::Type::LIST:
      AddList(data, sum);
      break;
    case arrow::Type::STRUCT:
      AddStruct(data, sum);
      break;
    default:  // the canonical types have no other kind that is not of a fixed width
      if (arrow::is_fixed_width(data.type->id())) AddFixedWidth(data, sum);
  }
}

// Rows that a new column has: null, an array is empty.
arrow::Result<Data> Absent(const std::shared_ptr<arrow::DataType>& type, int64_t length) {
  ARROW_ASSIGN_OR_RAISE(auto nulls, arrow::MakeArrayOfNull(type, length));
  Data data = nulls->data()->Copy();
  if (type->id() == arrow::Type::LIST) {
    data->buffers[0] = nullptr;
    data->null_count = 0;
  }
  if (type->id() == arrow::Type::STRUCT) {
    for (int i = 0; i < type->num_fields(); ++i) {
      ARROW_ASSIGN_OR_RAISE(data->child_data[static_cast<size_t>(i)], Absent(type->field(i)->type(), length));
    }
  }
  return data;
}

arrow::Result<Data> Fit(const Data& have, const std::shared_ptr<arrow::DataType>& wanted) {
  Data fitted = have->Copy();
  fitted->type = wanted;
  if (wanted->id() == arrow::Type::LIST) {
    ARROW_ASSIGN_OR_RAISE(fitted->child_data[0], Fit(have->child_data[0], wanted->field(0)->type()));
  } else if (wanted->id() == arrow::Type::STRUCT) {
    fitted->child_data.clear();
    for (const auto& field : wanted->fields()) {
      Data child;
      for (int i = 0; i < have->type->num_fields(); ++i) {
        if (!SameColumnName(have->type->field(i)->name(), field->name())) continue;
        ARROW_ASSIGN_OR_RAISE(child, Fit(have->child_data[static_cast<size_t>(i)], field->type()));
      }
      if (child == nullptr) {
        ARROW_ASSIGN_OR_RAISE(child, Absent(field->type(), have->length + have->offset));
      }
      fitted->child_data.push_back(std::move(child));
    }
  }
  return fitted;
}

}  // namespace

arrow::Result<RowBatches> RowBatches::Make(std::shared_ptr<arrow::Schema> schema,
                                           std::vector<std::shared_ptr<arrow::RecordBatch>> batches) {
  RowBatches made;
  made.schema = std::move(schema);
  for (auto& batch : batches) {
    if (batch->num_rows() == 0) continue;
    made.starts.push_back(made.rows);
    made.rows += batch->num_rows();
    made.bytes += ReferencedBytes(*batch);
    made.batches.push_back(std::move(batch));
  }
  return made;
}

arrow::Result<RowBatches> RowBatches::Make(const std::shared_ptr<arrow::Table>& table) {
  // Few large batches: a message never spans two of them.
  ARROW_ASSIGN_OR_RAISE(auto combined, table->CombineChunks());
  arrow::TableBatchReader reader(*combined);
  ARROW_ASSIGN_OR_RAISE(auto batches, reader.ToRecordBatches());
  if (table->num_columns() > 0) return Make(table->schema(), std::move(batches));
  batches = {arrow::RecordBatch::Make(table->schema(), table->num_rows(), arrow::ArrayVector{})};
  return Make(table->schema(), std::move(batches));
}

std::shared_ptr<arrow::RecordBatch> RowBatches::Slice(int64_t offset, int64_t length) const {
  auto after = std::upper_bound(starts.begin(), starts.end(), offset);
  auto index = static_cast<size_t>(after - starts.begin()) - 1;
  return batches[index]->Slice(offset - starts[index], length);
}

arrow::Result<RowBatches> RowBatches::Select(const std::vector<int>& indices) const {
  arrow::FieldVector fields;
  for (int index : indices) fields.push_back(schema->field(index));
  auto selected = arrow::schema(std::move(fields), schema->metadata());
  std::vector<std::shared_ptr<arrow::RecordBatch>> projected;
  for (const auto& batch : batches) {
    ARROW_ASSIGN_OR_RAISE(auto columns, batch->SelectColumns(indices));
    projected.push_back(arrow::RecordBatch::Make(selected, batch->num_rows(), columns->columns()));
  }
  return Make(selected, std::move(projected));
}

arrow::Result<RowBatches> RowBatches::Reshape(const std::shared_ptr<arrow::Schema>& wanted) const {
  std::vector<std::shared_ptr<arrow::RecordBatch>> reshaped;
  for (const auto& batch : batches) {
    std::vector<Data> columns;
    for (const auto& field : wanted->fields()) {
      Data column;
      for (int i = 0; i < schema->num_fields(); ++i) {
        if (!SameColumnName(schema->field(i)->name(), field->name())) continue;
        ARROW_ASSIGN_OR_RAISE(column, Fit(batch->column_data(i), field->type()));
      }
      if (column == nullptr) {
        ARROW_ASSIGN_OR_RAISE(column, Absent(field->type(), batch->num_rows()));
      }
      columns.push_back(std::move(column));
    }
    reshaped.push_back(arrow::RecordBatch::Make(wanted, batch->num_rows(), std::move(columns)));
  }
  return Make(wanted, std::move(reshaped));
}

uint64_t ContentChecksum(const RowBatches& rows) {
  Checksum sum;
  for (const auto& batch : rows.batches) {
    sum.Word(static_cast<uint64_t>(batch->num_rows()));
    for (int i = 0; i < batch->num_columns(); ++i) AddValues(*batch->column_data(i), &sum);
  }
  return sum.value();
}

}  // namespace headrace::local
