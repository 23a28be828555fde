#include "headrace/files/internal/format_writer.h"

#include <fmt/format.h>

#include "headrace/files/internal/arrow_format.h"
#include "headrace/files/internal/avro_format.h"
#include "headrace/files/internal/csv_format.h"
#include "headrace/files/internal/ndjson_format.h"
#include "headrace/files/internal/parquet_format.h"
#include "headrace/types/type_table.h"

namespace headrace {
arrow::Status CheckFormatSchema(const FileEncoding& encoding, const arrow::Schema& schema) {
  const FileFormat format = encoding.kind.format;
  if (schema.num_fields() == 0) {
    const std::string name(FileFormatName(format));
    return Unsupported(name, fmt::format("a {} file cannot hold rows without columns: select at least one column", name));
  }
  ARROW_RETURN_NOT_OK(FromArrowSchema(schema).status());
  return format == FileFormat::kCsv ? CheckCsvSchema(schema, encoding.csv_nested_as_json) : arrow::Status::OK();
}

arrow::Result<std::unique_ptr<FormatWriter>> MakeFormatWriter(const FileEncoding& encoding, const std::shared_ptr<arrow::Schema>& schema,
                                                              const std::shared_ptr<arrow::io::OutputStream>& out) {
  switch (encoding.kind.format) {
    case FileFormat::kParquet:
      return ParquetFormatWriter::Make(encoding, schema, out);
    case FileFormat::kArrow:
    case FileFormat::kArrowStream:
      return ArrowFormatWriter::Make(encoding, schema, out);
    case FileFormat::kCsv:
      return CsvFormatWriter::Make(encoding, schema, out);
    case FileFormat::kNdjson:
      return NdjsonFormatWriter::Make(encoding, schema, out);
    case FileFormat::kAvro:
      return AvroFormatWriter::Make(encoding, schema, out);
  }
  return arrow::Status::UnknownError("no such format");
}

}  // namespace headrace
