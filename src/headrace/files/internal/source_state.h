// What the file source persists, as plain values, and its bytes. Free functions, any thread. state.proto has the wire form,
// docs/formats/file-source-state.md is its document.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/files/internal/file_part.h"
#include "headrace/runtime/source_description.h"
#include "headrace/runtime/split.h"

namespace headrace {

/// SplitEnumerator::Snapshot.
struct FilePlanState {
  bool planned = false;
  std::string schema{};  // of the result: one encapsulated IPC message
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t rows = -1;  // negative = not known
  std::deque<Split> queue{};
  SourceDescription reads{};
};

std::string EncodeFilePart(const FilePart& part);
std::string EncodeFilePlan(const FilePlanState& state);

/// DATA_LOSS for bytes that are no such message, UNIMPLEMENTED naming both versions for those of another version.
arrow::Result<FilePart> DecodeFilePart(std::string_view bytes);
arrow::Result<FilePlanState> DecodeFilePlan(std::string_view bytes);

/// A position is the number of rows of the split that were handed over, as decimal digits; empty = none.
arrow::Result<int64_t> ParseFilePosition(std::string_view text);

}  // namespace headrace
