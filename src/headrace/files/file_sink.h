// A sink that writes files of one format: a directory of part files with a manifest, a single file, or standard output.
// docs/formats/manifest.md says what lies on disk when, docs/formats/files.md what is in the files.
//
// A FileSink is immutable and may be shared by threads; its writers and committers belong to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/files/file_format.h"
#include "headrace/runtime/sink.h"

namespace headrace {

/// Options of one format are errors with another. An empty text or nullopt = the format's own default.
struct FileSinkOptions {
  /// A path that ends in '/' or whose last part has no extension is a directory; NAME.EXT is a single file; "-" is standard output.
  std::string path{};
  /// Replaces an existing target: a single file, or the files that the manifest of an earlier result names, once the new result is
  /// complete.
  bool overwrite = false;
  /// parquet, arrow, arrows, csv, ndjson or avro. Empty = by the extension of a single file, else parquet; "-" needs it.
  std::string format{};
  /// Directory form: a writer goes on in a new file once its file has about this size. 0 = no bound.
  int64_t max_file_bytes = 0;

  /// zstd (default), snappy, gzip, lz4 or none.
  std::string parquet_compression{};
  /// A row group ends at this many rows (1,000,000) ...
  std::optional<int64_t> parquet_row_group_rows{};
  /// ... or when its encoded columns take this many bytes of memory (64 MiB; less when the job lends a writer less), whichever comes first.
  std::optional<int64_t> parquet_row_group_bytes{};

  /// Buffers of arrow and arrows: none (default), lz4 or zstd.
  std::string arrow_compression{};

  /// csv and ndjson: none, gzip or zstd. Default: as the name says (.csv.gz, .csv.zst), else none. A single file's name must agree.
  std::string csv_compression{};
  std::string ndjson_compression{};
  /// What stands for null, unquoted; default nothing at all. A value with that text is quoted, and so is every empty text.
  std::optional<std::string> csv_null_value{};
  /// "json": ARRAYs and STRUCTs are written as JSON texts. Default: such columns are refused by name.
  std::string csv_nested{};

  /// deflate (default), snappy, zstd or none.
  std::string avro_compression{};

  /// Where the bytes of "-" go: a descriptor that is open and is left open.
  int output_descriptor = 1;
};

class FileSink final : public Sink {
 public:
  /// Checks the options; touches no file.
  static arrow::Result<std::shared_ptr<const FileSink>> Make(FileSinkOptions options);

  Lineage lineage() const override;
  int max_writers() const override;
  arrow::Status SupportsCheckpoints() const override;
  /// Makes and removes an empty file beside or in the target, to see that it may. Standard output is not touched before there are rows.
  arrow::Status Check(const SinkContext& context) const override;
  arrow::Result<std::string> Prepare(const SinkContext& context, const std::shared_ptr<arrow::Schema>& schema) const override;
  arrow::Result<std::unique_ptr<SinkWriter>> CreateWriter(const SinkContext& context, std::string_view job_state,
                                                          const std::shared_ptr<arrow::Schema>& schema) const override;
  arrow::Result<std::unique_ptr<SinkWriter>> RestoreWriter(const SinkContext& context, std::string_view job_state,
                                                           const std::shared_ptr<arrow::Schema>& schema,
                                                           const std::vector<std::string>& states) const override;
  arrow::Result<std::unique_ptr<Committer>> CreateCommitter(const SinkContext& context, std::string_view job_state) const override;
  arrow::Status RemoveOrphans(const SinkContext& context, std::string_view job_state,
                              const std::vector<std::string>& writer_states) const override;
  arrow::Status Finish(const SinkContext& context, std::string_view job_state, const std::shared_ptr<arrow::Schema>& schema,
                       const std::vector<std::string>& writer_states, const Report& report) const override;
  arrow::Status Abandon(const SinkContext& context, std::string_view job_state) const override;
  std::map<std::string, std::string> facts(std::string_view job_state) const override;

  const FileSinkOptions& options() const { return options_; }
  /// One file, or standard output.
  bool single_file() const { return single_file_; }
  bool standard_output() const { return options_.path == "-"; }
  FileKind kind() const { return kind_; }

 private:
  FileSink(FileSinkOptions options, bool single_file, FileKind kind)
      : options_(std::move(options)), single_file_(single_file), kind_(kind) {}
  /// Where the files go.
  std::string directory() const;
  /// Its name in the directory; empty for part files, "-" for standard output.
  std::string single_name() const;

  FileSinkOptions options_;  // path without trailing slashes
  const bool single_file_;
  const FileKind kind_;
};

}  // namespace headrace
