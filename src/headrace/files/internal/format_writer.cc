#include "headrace/files/internal/format_writer.h"

#include <fmt/format.h>

#include "headrace/files/internal/arrow_format.h"
#include "headrace/files/internal/parquet_format.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Status NotBuilt(FileFormat format) { return Unsupported("format", fmt::format("writing {} is not built", FileFormatName(format))); }

}  // namespace

arrow::Status CheckFormatSchema(const FileEncoding& encoding, const arrow::Schema& schema) {
  const FileFormat format = encoding.kind.format;
  if (schema.num_fields() == 0) {
    const std::string name(FileFormatName(format));
    return Unsupported(name, fmt::format("a {} file cannot hold rows without columns: select at least one column", name));
  }
  return FromArrowSchema(schema).status();
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
    case FileFormat::kNdjson:
    case FileFormat::kAvro:
      return NotBuilt(encoding.kind.format);
  }
  return NotBuilt(encoding.kind.format);
}

}  // namespace headrace
