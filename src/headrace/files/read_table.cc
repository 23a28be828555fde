#include "headrace/files/read_table.h"

#include <utility>

#include "headrace/files/file_source.h"
#include "headrace/files/internal/file_list.h"
#include "headrace/runtime/read.h"

namespace headrace {
namespace {

/// The null texts are of CSV files, and the caller need not know whether these are some.
arrow::Result<std::shared_ptr<const FileSource>> SourceOf(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  FileSourceOptions source{.paths = {path}, .schema = options.schema};
  // Why a path is no source is the source's to say.
  if (FormatOfFiles(files, path) == FileFormat::kCsv) source.csv_null_values = options.csv_null_values;
  return FileSource::Make(std::move(source));
}

}  // namespace

arrow::Result<FileFormat> FormatOfFiles(FileSystem* files, const std::string& path) {
  FileSourceOptions source{.paths = {path}};
  ARROW_ASSIGN_OR_RAISE(auto list, ListFiles({.options = std::make_shared<const FileSourceOptions>(source), .files = files, .input = {}}));
  if (!list.files.empty()) return list.files.front().kind.format;
  return FileFormatFromName(list.manifest->format).value_or(FileFormat::kParquet);
}

arrow::Result<std::shared_ptr<arrow::Table>> ReadTable(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto source, SourceOf(files, path, options));
  ReadOptions read{.ordered = true};
  read.context.files = files;
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(std::move(source), read));
  return reader->ToTable();
}

arrow::Result<std::shared_ptr<arrow::Schema>> ReadTableSchema(FileSystem* files, const std::string& path, const ReadTableOptions& options) {
  ARROW_ASSIGN_OR_RAISE(auto source, SourceOf(files, path, options));
  JobContext context;
  context.files = files;
  ARROW_ASSIGN_OR_RAISE(auto enumerator, source->CreateEnumerator(context));
  ARROW_RETURN_NOT_OK(enumerator->Start());
  return enumerator->schema();
}

}  // namespace headrace
