// Parquet's INT96, the timestamps of Hive, Impala and Spark: a Julian day and the nanoseconds of it. Free function, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/error.h"

namespace parquet {
class ParquetFileReader;
}

namespace headrace {

/// Whether Arrow's reader, asked for microseconds, gives the very values of those of `leaves` that are INT96: it cuts off what is below a
/// microsecond, and its arithmetic wraps outside of 64 bits. `first_row` is that of the first of `row_groups` in the file, for the error,
/// which names column, row and value.
arrow::Status CheckInt96(parquet::ParquetFileReader* file, const std::vector<int>& row_groups, const std::vector<int>& leaves,
                         int64_t first_row);

}  // namespace headrace
