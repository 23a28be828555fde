// Checks of Arrow data that came from outside, before anything follows its offsets and indexes. Free functions, any thread.
#pragma once

#include <arrow/array/data.h>
#include <arrow/record_batch.h>

#include "headrace/base/error.h"

namespace headrace {

/// What following the arrays relies on: Validate() of every column, then all offsets in order and within their data, all dictionary indexes
/// within their dictionary. Values themselves (UTF-8, decimal digits, ranges) are not looked at: the canonicalizer does, and Arrow's own
/// full validation refuses the 77 digits that a BIGNUMERIC may have. Invalid says what is wrong, not where it came from.
arrow::Status CheckUntrusted(const arrow::RecordBatch& batch);

/// The null counts of IPC data are only claims, and decide whether nulls are looked for: they are counted again when they are asked for.
/// Changes the batch's own arrays, so only its maker may call it.
void ForgetNullCounts(const arrow::RecordBatch& batch);

}  // namespace headrace
