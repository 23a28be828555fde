// The seam between the file source and its formats: a format looks at a file once to say what is in it, and opens a part of it as a stream
// of batches.
//
// One thread. Batches have the canonical types, the columns that were asked for in the order of the file.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>

#include "headrace/base/error.h"
#include "headrace/files/internal/file_access.h"
#include "headrace/files/internal/file_part.h"

namespace headrace {

class RowStream {
 public:
  virtual ~RowStream() = default;
  /// The next rows, at least one; null at the end.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  /// Bytes of the file that Next has been through; negative = not known.
  virtual int64_t bytes_read() const { return -1; }
  /// After the end: what a person should know of these rows; empty = nothing.
  virtual std::string warning() const { return {}; }
};

/// What a look at a file found.
struct FoundFile {
  std::shared_ptr<arrow::Schema> schema{};  // canonical, all columns
  std::vector<FilePart> parts{};
};

/// Opens a part. `schema` is the canonical schema of the result: the columns to read. `where` names the file in errors.
arrow::Result<std::unique_ptr<RowStream>> OpenRowStream(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema);

/// Looks at a file of a format that has its own schema.
arrow::Result<FoundFile> LookAtFile(const FileAccess& access, const FileIdentity& file);
/// Looks at all files of CSV or NDJSON together. `known` is their schema; without it (null) types are found from all values.
arrow::Result<FoundFile> LookAtText(const FileAccess& access, const std::vector<FileIdentity>& files,
                                    const std::shared_ptr<arrow::Schema>& known, const std::stop_token& stop);
arrow::Result<FoundFile> LookAtParquet(const FileAccess& access, const FileIdentity& file);
arrow::Result<FoundFile> LookAtArrow(const FileAccess& access, const FileIdentity& file);

/// Behind the text of what a reader found wrong with the bytes of a file.
inline constexpr std::string_view kDamagedFile =
    ". The file is damaged or cut short, or not of its format: make it anew, or say its format (from_format)";
/// An error of Arrow's own reader, or of our Avro's: says which file, that the file is at fault, and what to do.
arrow::Status ExplainFileError(const arrow::Status& status, const std::string& path);
/// `batch` with canonical types and the columns of `schema`, in its order. The error names file, column and row: `first_row` is that of the
/// batch's first.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> ToResultColumns(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                                   const std::shared_ptr<arrow::Schema>& schema, const std::string& path,
                                                                   int64_t first_row = 0);
/// The canonical form of a file's schema. The error names the file and the column that BigQuery has no type for.
arrow::Result<std::shared_ptr<arrow::Schema>> CanonicalFileSchema(const std::shared_ptr<arrow::Schema>& schema, const std::string& path);

}  // namespace headrace
