#include "headrace/local/read_view.h"

#include <algorithm>
#include <utility>

#include <arrow/array/builder_primitive.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/api_vector.h>
#include <arrow/compute/exec.h>
#include <arrow/compute/initialize.h>
#include <google/cloud/bigquery/storage/v1/arrow.pb.h>

#include "headrace/local/read_schema.h"
#include "headrace/local/restriction.h"
#include "headrace/local/split_mix.h"

namespace headrace::local {
namespace {

namespace storage = google::cloud::bigquery::storage::v1;

// Sampling takes or leaves whole blocks, as TABLESAMPLE SYSTEM does; small ones, so that a small table has some.
constexpr int64_t kSampleBlockRows = 64;

bool BlockSampled(uint64_t seed, int64_t block, double percentage) {
  double uniform = static_cast<double>(SplitMix(seed ^ SplitMix(static_cast<uint64_t>(block))) >> 11) * 0x1.0p-53;
  return uniform * 100 < percentage;
}

arrow::Result<std::shared_ptr<arrow::BooleanArray>> SampleMask(const SessionState& session, int64_t start, int64_t length) {
  arrow::BooleanBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Reserve(length));
  for (int64_t row = start; row < start + length; ++row) {
    builder.UnsafeAppend(BlockSampled(session.sample_seed(), row / kSampleBlockRows, session.sample_percentage()));
  }
  std::shared_ptr<arrow::BooleanArray> mask;
  ARROW_RETURN_NOT_OK(builder.Finish(&mask));
  return mask;
}

}  // namespace

TimestampPrecision PrecisionOf(const SessionState& session) {
  switch (session.picos_precision()) {
    case storage::ArrowSerializationOptions::TIMESTAMP_PRECISION_NANOS:
      return TimestampPrecision::kNanos;
    case storage::ArrowSerializationOptions::TIMESTAMP_PRECISION_PICOS:
      return TimestampPrecision::kPicos;
    default:  // arrow.proto: "If not set, the default precision is microseconds."
      return TimestampPrecision::kMicros;
  }
}

arrow::Result<std::shared_ptr<const ReadView>> ReadView::Make(std::shared_ptr<const StoredTable> table, const SessionState& session) {
  std::shared_ptr<const Restriction> restriction;
  if (!session.row_restriction().empty()) {
    ARROW_ASSIGN_OR_RAISE(restriction, Restriction::Bind(session.row_restriction(), *table->rows.schema));
  }
  auto view = std::make_shared<ReadView>();
  ARROW_ASSIGN_OR_RAISE(view->columns_, SelectFields(table->schema, {session.selected_fields().begin(), session.selected_fields().end()}));
  ARROW_ASSIGN_OR_RAISE(auto columns, ToArrowSchema(view->columns_));
  ARROW_ASSIGN_OR_RAISE(RowBatches projected, table->rows.Reshape(columns));
  view->table_ = std::move(table);
  view->scanned_bytes_ = projected.bytes;
  bool sampled = session.sample_percentage() < 100;
  if (restriction == nullptr && !sampled) {
    ARROW_ASSIGN_OR_RAISE(view->rows_, CutPicos(projected, view->columns_, PrecisionOf(session)));
    if (view->rows_.schema != projected.schema) view->extra_bytes_ = view->rows_.bytes;
    return view;
  }
  ARROW_RETURN_NOT_OK(arrow::compute::Initialize());
  std::vector<std::shared_ptr<arrow::RecordBatch>> filtered;
  std::vector<std::shared_ptr<arrow::BooleanArray>> masks;
  for (size_t i = 0; i < projected.batches.size(); ++i) {
    const auto& batch = projected.batches[i];
    std::shared_ptr<arrow::BooleanArray> mask;
    if (restriction != nullptr) {
      ARROW_ASSIGN_OR_RAISE(mask, restriction->Evaluate(*view->table_->rows.batches[i]));
    }
    if (sampled) {
      ARROW_ASSIGN_OR_RAISE(auto sample, SampleMask(session, projected.starts[i], batch->num_rows()));
      if (mask != nullptr) {
        ARROW_ASSIGN_OR_RAISE(auto both, arrow::compute::And(mask, sample));
        sample = std::static_pointer_cast<arrow::BooleanArray>(both.make_array());
      }
      mask = sample;
    }
    if (batch->num_columns() == 0) {
      filtered.push_back(arrow::RecordBatch::Make(projected.schema, mask->true_count(), arrow::ArrayVector{}));
    } else {
      ARROW_ASSIGN_OR_RAISE(arrow::Datum kept, arrow::compute::Filter(batch, mask));
      filtered.push_back(kept.record_batch());
    }
    view->extra_bytes_ += batch->num_rows() / 4;  // validity and values of the mask
    masks.push_back(std::move(mask));
  }
  view->kept_ = KeptRows(std::move(masks));
  ARROW_ASSIGN_OR_RAISE(RowBatches kept, RowBatches::Make(projected.schema, std::move(filtered)));
  ARROW_ASSIGN_OR_RAISE(view->rows_, CutPicos(kept, view->columns_, PrecisionOf(session)));
  view->extra_bytes_ += view->rows_.bytes;
  return view;
}

arrow::Result<std::shared_ptr<const ReadView>> ReadViewCache::Get(const std::shared_ptr<const StoredTable>& table,
                                                                  const SessionState& session) {
  SessionState what;
  what.set_table(session.table());
  *what.mutable_selected_fields() = session.selected_fields();
  what.set_row_restriction(session.row_restriction());
  what.set_sample_percentage(session.sample_percentage());
  what.set_sample_seed(session.sample_seed());
  what.set_picos_precision(session.picos_precision());
  what.set_table_rows(table->rows.rows);
  what.set_schema_checksum(table->schema_checksum);
  what.set_content_checksum(table->content_checksum);
  std::string key = what.SerializeAsString();

  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto& slot = entries_[key];
    if (slot == nullptr) {
      slot = std::make_shared<Entry>();
      recent_.push_front(key);
    } else {
      recent_.erase(slot->position);
      recent_.push_front(key);
    }
    slot->position = recent_.begin();
    entry = slot;
  }
  std::shared_ptr<const ReadView> view;
  {
    std::lock_guard making(entry->making);
    view = entry->view;
    if (view == nullptr) {
      auto made = ReadView::Make(table, session);
      if (!made.ok()) {
        std::lock_guard lock(mutex_);
        auto found = entries_.find(key);
        if (found != entries_.end() && found->second == entry) {
          recent_.erase(entry->position);
          entries_.erase(found);
        }
        return made.status();
      }
      view = *made;
      std::lock_guard lock(mutex_);
      entry->view = view;
    }
  }
  Trim();
  return view;
}

// The newest stays whatever its size: its streams are being read.
void ReadViewCache::Trim() {
  constexpr size_t kMostViews = 256;  // views without a restriction cost next to nothing, but keys do
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  size_t count = 0;
  for (auto at = recent_.begin(); at != recent_.end();) {
    auto found = entries_.find(*at);
    const auto& view = found->second->view;
    if (view != nullptr) bytes += view->extra_bytes();
    ++count;
    if (view != nullptr && count > 1 && (bytes > limit_bytes_ || count > kMostViews)) {
      bytes -= view->extra_bytes();
      entries_.erase(found);
      at = recent_.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace headrace::local
