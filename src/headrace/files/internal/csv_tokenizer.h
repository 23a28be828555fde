// CSV text as records of fields (RFC 4180), from a stream that is read in pieces.
//
// A quoted field may hold delimiters, line feeds and doubled quotes, and must end before a delimiter or the end of its line: anything else
// is an error that names the line where the quote was opened, so a quote that is never closed cannot swallow what follows unnoticed.
// Records end with LF or CR LF. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/io/interfaces.h>

#include "headrace/base/error.h"

namespace headrace {

struct CsvField {
  std::string_view text{};
  bool quoted = false;
};

/// What a record may take, quotes and line feeds included: BigQuery's limit of a row of CSV is 100 MB
/// (https://cloud.google.com/bigquery/quotas#load_jobs).
inline constexpr int64_t kMaxRecordBytes = int64_t{100} << 20;

class CsvTokenizer {
 public:
  /// `path` and `first_line` (from 1) are for messages; `offset` is where the stream begins in its file. At offset 0 a byte order mark is
  /// passed over.
  CsvTokenizer(std::shared_ptr<arrow::io::InputStream> input, std::string path, int64_t offset = 0, int64_t first_line = 1);

  /// Reads the next record; false at the end. An empty line is a record of one empty field.
  arrow::Result<bool> Next();
  /// Of the last record; valid until the next call of Next.
  const std::vector<CsvField>& fields() const { return fields_; }
  bool empty_line() const { return fields_.size() == 1 && fields_[0].text.empty() && !fields_[0].quoted; }
  /// The line on which the last record begins.
  int64_t line() const { return line_; }
  /// Where the last record begins and ends in the file.
  int64_t record_offset() const { return record_offset_; }
  int64_t end_offset() const { return base_ + static_cast<int64_t>(next_); }

 private:
  struct Piece {
    size_t begin;
    size_t end;
    bool quoted;
    bool doubled;  // has "" in it
  };
  enum class Scan { kRecord, kNeedMore };

  arrow::Status Refill();
  arrow::Result<Scan> ScanRecord();
  arrow::Result<Scan> ScanQuoted(size_t* position);
  arrow::Status QuoteError(size_t quote, std::string_view why) const;
  void MakeFields();

  const std::shared_ptr<arrow::io::InputStream> input_;
  const std::string path_;
  std::string buffer_{};
  bool at_end_ = false;
  int64_t base_;       // file offset of buffer_[0]
  size_t next_ = 0;    // of the next record
  int64_t next_line_;  // its line
  int64_t line_ = 0;
  int64_t record_offset_ = 0;
  std::vector<Piece> pieces_{};
  std::vector<CsvField> fields_{};
  std::string unescaped_{};
};

}  // namespace headrace
