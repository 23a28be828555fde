// Tables of the benchmarks, made by a program: the same rows on every machine. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <arrow/record_batch.h>

#include "headrace/base/error.h"

namespace headrace::bench {

/// "usa_names": 5 columns, short strings and whole numbers, about 36 bytes a row. "narrow8": 8 nullable numbers, a tenth of them null,
/// about 65 bytes. "wide": 40 columns of ten types, about 550 bytes. Nothing for another name.
std::shared_ptr<arrow::Schema> TableSchemaOf(std::string_view table);

/// Rows [first, first + count) of a table.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> MakeRows(std::string_view table, int64_t first, int64_t count);

}  // namespace headrace::bench
