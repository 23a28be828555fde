// A part of a CSV file. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/files/internal/csv_tokenizer.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/files/internal/text_columns.h"

namespace headrace {

/// The names of a file's columns and where each is.
class CsvHeader {
 public:
  /// From the first record: names that are there, once each whatever their case. NOT at the end of an empty file.
  static arrow::Result<CsvHeader> Read(CsvTokenizer* tokenizer, const std::string& path);
  /// Without a header: those of the table, in its order.
  explicit CsvHeader(std::vector<std::string> names) : names_(std::move(names)) {}

  const std::vector<std::string>& names() const { return names_; }
  /// For each column of `schema` its place in a record. The error names file and column.
  arrow::Result<std::vector<size_t>> PlacesOf(const arrow::Schema& schema, const std::string& path) const;
  /// BAD_ROW unless the record has as many fields as there are names.
  arrow::Status CheckRecord(const CsvTokenizer& tokenizer, const std::string& path) const;
  /// An empty line is no record, unless there is only one column: then it is its null.
  bool IsNoRecord(const CsvTokenizer& tokenizer) const { return names_.size() != 1 && tokenizer.empty_line(); }

 private:
  std::vector<std::string> names_;
};

/// Whether a field is null.
bool IsCsvNull(const FileSourceOptions& options, const CsvField& field);
/// The header of a file whose part may begin behind it, read from the file's beginning or known from the options.
arrow::Result<CsvHeader> HeaderOf(const FileAccess& access, const FileIdentity& file);

class CsvRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema);
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;
  int64_t bytes_read() const override;

 private:
  CsvRows(const FileAccess& access, FilePart part, CsvTokenizer tokenizer, CsvHeader header, TextColumns columns,
          std::vector<size_t> places);
  arrow::Status ReadRecord();

  const std::shared_ptr<const FileSourceOptions> options_;
  const FilePart part_;
  CsvTokenizer tokenizer_;
  const CsvHeader header_;
  TextColumns columns_;
  const std::vector<size_t> places_;  // of the result's columns in a record
};

}  // namespace headrace
