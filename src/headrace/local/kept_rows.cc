#include "headrace/local/kept_rows.h"

#include <algorithm>
#include <utility>

namespace headrace::local {
namespace {

// Counting through it costs less than encoding one message.
constexpr int64_t kBlockRows = 4096;

}  // namespace

KeptRows::KeptRows(std::vector<std::shared_ptr<arrow::BooleanArray>> masks) : masks_(std::move(masks)), all_(false) {
  int64_t row = 0;
  int64_t kept = 0;
  for (size_t i = 0; i < masks_.size(); ++i) {
    for (int64_t offset = 0; offset < masks_[i]->length(); offset += kBlockRows) {
      int64_t length = std::min(kBlockRows, masks_[i]->length() - offset);
      blocks_.push_back({.row = row, .kept = kept, .mask = i, .offset = offset, .length = length});
      row += length;
      kept += static_cast<const arrow::BooleanArray&>(*masks_[i]->Slice(offset, length)).true_count();
    }
  }
}

int64_t KeptRows::Before(int64_t row) const {
  if (all_) return row;
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), row, [](int64_t value, const Block& block) { return value < block.row; });
  if (after == blocks_.begin()) return 0;
  const Block& block = *std::prev(after);
  int64_t part = std::min(block.length, row - block.row);
  return block.kept + static_cast<const arrow::BooleanArray&>(*masks_[block.mask]->Slice(block.offset, part)).true_count();
}

int64_t KeptRows::RowOf(int64_t kept) const {
  if (all_) return kept;
  // Of blocks with the same count before them the last one has the row: those before it keep none.
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), kept, [](int64_t value, const Block& block) { return value < block.kept; });
  const Block& block = *std::prev(after);
  int64_t left = kept - block.kept;
  for (int64_t i = 0; i < block.length; ++i) {
    if (!masks_[block.mask]->IsValid(block.offset + i) || !masks_[block.mask]->Value(block.offset + i)) continue;
    if (left == 0) return block.row + i;
    --left;
  }
  return block.row + block.length;
}

}  // namespace headrace::local
