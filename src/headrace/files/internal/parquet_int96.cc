#include "headrace/files/internal/parquet_int96.h"

#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "headrace/types/value_text.h"

namespace headrace {
namespace {

constexpr int64_t kJulianDayOf1970 = 2'440'588;  // https://en.wikipedia.org/wiki/Julian_day
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNanosPerMicro = 1'000;
constexpr size_t kValuesAtOnce = 4096;

arrow::Status CheckValue(const parquet::Int96& value, const std::string& column, int64_t row) {
  const auto refused = [&](const std::string& what) {
    return MakeError({.code = Code::kInvalidArgument, .reason = "VALUE_DOES_NOT_FIT", .row = row, .column = column},
                     fmt::format("column {}, row {}: {}", column, row, what));
  };
  const int64_t day = int64_t{value.value[2]} - kJulianDayOf1970;
  uint64_t nanos = 0;
  std::memcpy(&nanos, &value, sizeof(nanos));
  if (day < kMinDate || day > kMaxDate || nanos > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return refused(
        fmt::format("an INT96 of the Julian day {} and {} nanoseconds is outside 0001-01-01 00:00:00 to 9999-12-31 23:59:59.999999",
                    value.value[2], nanos));
  }
  if (nanos % kNanosPerMicro == 0) return arrow::Status::OK();
  const auto of_day = static_cast<int64_t>(nanos);
  std::string text;
  AppendPicosTimestamp({day * kSecondsPerDay + of_day / kNanosPerSecond, of_day % kNanosPerSecond * 1'000}, &text);
  text.resize(text.size() - std::string_view("000Z").size());  // INT96 has nanoseconds and no zone
  return refused(fmt::format("the INT96 {} has digits below a microsecond, which no type of BigQuery takes from it", text));
}

/// `row` is that before the column's first one.
arrow::Status CheckColumn(parquet::Int96Reader* reader, const parquet::ColumnDescriptor& descriptor, int64_t row) {
  const std::string column = descriptor.path()->ToDotString();
  std::vector<int16_t> definitions(kValuesAtOnce, 0);
  std::vector<int16_t> repetitions(kValuesAtOnce, 0);
  std::vector<parquet::Int96> values(kValuesAtOnce);
  while (reader->HasNext()) {
    int64_t read = 0;
    const int64_t levels =
        reader->ReadBatch(static_cast<int64_t>(kValuesAtOnce), definitions.data(), repetitions.data(), values.data(), &read);
    if (levels == 0) break;
    size_t next = 0;
    for (size_t i = 0; i < static_cast<size_t>(levels); ++i) {
      if (repetitions[i] == 0) ++row;
      if (descriptor.max_definition_level() > 0 && definitions[i] < descriptor.max_definition_level()) continue;
      if (next < static_cast<size_t>(read)) ARROW_RETURN_NOT_OK(CheckValue(values[next++], column, row));
    }
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Status CheckInt96(parquet::ParquetFileReader* file, const std::vector<int>& row_groups, const std::vector<int>& leaves,
                         int64_t first_row) {
  const auto& schema = *file->metadata()->schema();
  try {
    for (const int group : row_groups) {
      const auto rows = file->RowGroup(group);
      for (const int leaf : leaves) {
        if (schema.Column(leaf)->physical_type() != parquet::Type::INT96) continue;
        const auto reader = rows->Column(leaf);
        ARROW_RETURN_NOT_OK(CheckColumn(static_cast<parquet::Int96Reader*>(reader.get()), *schema.Column(leaf), first_row - 1));
      }
      first_row += rows->metadata()->num_rows();
    }
  } catch (const std::exception& error) {  // how Parquet's own reader reports damage
    return arrow::Status::IOError(error.what());
  }
  return arrow::Status::OK();
}

}  // namespace headrace
