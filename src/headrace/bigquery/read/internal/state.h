// What the BigQuery source persists, as bytes: the descriptor of a split and the snapshot of an enumerator. docs/formats/bigquery-state.md.
//
// Plain values. Version 2 is written, 1 and 2 are read. Bytes are untrusted: anything that does not add up is DATA_LOSS with the reason
// CORRUPT_STATE, another version UNIMPLEMENTED.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/bigquery/read/options.h"
#include "headrace/runtime/source_description.h"
#include "headrace/runtime/split.h"

namespace headrace::bigquery {

struct StreamState {
  std::string stream{};
  int64_t session_created_ms = 0;
  int64_t session_expires_ms = 0;
  std::vector<uint32_t> result_columns{};
  SourceFormat format = SourceFormat::kArrow;
  ResponseCompression response_compression = ResponseCompression::kNone;
  std::string wire_schema{};  // of the session: Arrow IPC bytes or Avro JSON; empty = the result's schema in the order of the wire
  int64_t cut_rows = 0;       // the near part of a stream that was cut at this row; 0 = not cut
  double cut_fraction = 0;    // of this stream, where that row lies

  bool operator==(const StreamState&) const = default;
};

struct PlanState {
  bool planned = false;
  std::string session{};
  int64_t session_created_ms = 0;
  int64_t session_expires_ms = 0;
  std::string schema{};
  std::vector<uint32_t> wire_columns{};
  int64_t estimated_rows = -1;
  int64_t estimated_bytes = -1;
  std::deque<Split> queue{};
  SourceFormat format = SourceFormat::kArrow;
  ResponseCompression response_compression = ResponseCompression::kNone;
  bool schema_as_sent = false;  // the result's columns have the session's types: a plan of version 1
  SourceDescription reads{};

  bool operator==(const PlanState&) const = default;
};

std::string SerializeStreamState(const StreamState& state);
arrow::Result<StreamState> ParseStreamState(std::string_view bytes);
std::string SerializePlanState(const PlanState& state);
arrow::Result<PlanState> ParsePlanState(std::string_view bytes);

}  // namespace headrace::bigquery
