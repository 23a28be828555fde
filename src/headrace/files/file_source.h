// A source of rows in local files of any format: single files, directories, globs, lists, standard input. docs/formats/files.md says what
// is in the files, docs/formats/file-source-state.md what a checkpoint keeps.
//
// A FileSource is immutable and may be shared by threads. Its enumerators look at every file once; its readers read one split each, a part
// of one file, and belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/files/file_format.h"
#include "headrace/runtime/source.h"

namespace headrace {

constexpr int64_t kDefaultSplitBytes = int64_t{64} << 20;

/// Options of one format are errors with another. nullopt = the format's own default.
struct FileSourceOptions {
  /// One of: a file; a directory (with a manifest exactly the files that it names, else all files of the format, sorted by name); a pattern
  /// with *, ? or [...] in its parts; "-", standard input. Or several files.
  std::vector<std::string> paths{};
  /// parquet, arrow, arrows, csv, ndjson or avro. Empty = by the names; "-" needs it.
  std::string from_format{};
  /// Top-level columns, in this order, whatever their case. Empty = all.
  std::vector<std::string> selected_fields{};
  /// csv and ndjson: the table's schema as BigQuery's JSON (`bq show --schema`). Empty = from the manifest, else from all the values.
  std::string schema{};
  int64_t max_rows_per_batch = 65'536;
  int64_t max_bytes_per_batch = int64_t{8} << 20;  // of the buffers of a batch
  /// Splits have about this many bytes of a file: row groups, record batches and blocks are put together, text is divided at line ends.
  /// nullopt = kDefaultSplitBytes. Given where no file can be divided (Arrow streams, compressed text, standard input) it is an error.
  std::optional<int64_t> split_bytes{};

  /// csv: whether the first line names the columns (default true; without it `schema` is needed, and columns go by position).
  std::optional<bool> csv_header{};
  /// csv: unquoted fields that are null; default the empty field alone. A quoted field is never null.
  std::optional<std::vector<std::string>> csv_null_values{};

  /// csv and ndjson, by the coercion table (docs/types.md): true takes only what is taken always. Default false.
  std::optional<bool> strict{};
  /// csv and ndjson: digits behind the point that a NUMERIC or BIGNUMERIC column has no place for: error (default), half_away_from_zero or
  /// half_even.
  std::string rounding{};
  /// csv and ndjson: what an integer for a TIMESTAMP column counts since 1970: seconds, millis or micros. Default: it is an error.
  std::string epoch_unit{};
  /// ndjson: keys that no column has are passed over. Default: they are errors.
  std::optional<bool> ignore_unknown_values{};

  /// Where the bytes of "-" come from: a descriptor that is open and is left open.
  int input_descriptor = 0;
};

class StandardInput;

/// What a source of files counts.
std::span<const MetricInfo> FileSourceMetrics();

class FileSource final : public Source {
 public:
  /// Checks the options; touches no file.
  static arrow::Result<std::shared_ptr<const FileSource>> Make(FileSourceOptions options);

  Boundedness boundedness() const override { return Boundedness::kBounded; }
  Lineage lineage() const override;
  std::span<const MetricInfo> metrics() const override { return FileSourceMetrics(); }
  /// Standard input cannot be read a second time.
  arrow::Status SupportsCheckpoints() const override;
  arrow::Result<std::unique_ptr<SplitEnumerator>> CreateEnumerator(const JobContext& context) const override;
  arrow::Result<std::unique_ptr<SplitEnumerator>> RestoreEnumerator(const JobContext& context, std::string_view state) const override;
  arrow::Result<std::unique_ptr<SplitReader>> OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                         Split split) const override;

  const FileSourceOptions& options() const { return *options_; }
  bool standard_input() const { return options_->paths.size() == 1 && options_->paths.front() == "-"; }

 private:
  explicit FileSource(FileSourceOptions options);

  const std::shared_ptr<const FileSourceOptions> options_;
  const std::shared_ptr<StandardInput> input_;
};

}  // namespace headrace
