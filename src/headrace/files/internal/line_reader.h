// Lines of a text, from a stream that is read in pieces. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/io/interfaces.h>

#include "headrace/base/error.h"

namespace headrace {

/// What a line may take: BigQuery's limit of a row of JSON is 100 MB (https://cloud.google.com/bigquery/quotas#load_jobs).
inline constexpr int64_t kMaxLineBytes = int64_t{100} << 20;

class LineReader {
 public:
  /// `path` is for messages; `offset` is where the stream begins in its file. At offset 0 a byte order mark is passed over.
  LineReader(std::shared_ptr<arrow::io::InputStream> input, std::string path, int64_t offset = 0);

  /// Reads the next line that is not blank; false at the end.
  arrow::Result<bool> Next();
  /// Without its line feed; valid until the next call of Next.
  std::string_view line() const { return line_; }
  /// How many lines of the stream, blank ones too, came before it.
  int64_t lines_before() const { return lines_ - 1; }
  /// Where it ends in the file.
  int64_t end_offset() const { return base_ + static_cast<int64_t>(next_); }

 private:
  arrow::Status Refill();

  const std::shared_ptr<arrow::io::InputStream> input_;
  const std::string path_;
  std::string buffer_{};
  bool at_end_ = false;
  int64_t base_;     // file offset of buffer_[0]
  size_t next_ = 0;  // of the next line
  int64_t lines_ = 0;
  std::string_view line_{};
};

}  // namespace headrace
