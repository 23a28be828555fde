// A sink that writes Parquet: a directory of part files with a manifest, or a single file. docs/formats/manifest.md says what lies on disk
// when.
//
// A ParquetSink is immutable and may be shared by threads; its writers and committers belong to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/runtime/sink.h"

namespace headrace {

struct ParquetSinkOptions {
  /// NAME.parquet is a single file. A path that ends in '/' or whose last part has no extension is a directory.
  std::string path{};
  /// Replaces an existing target: a single file, or the files that the manifest of an earlier result names, once the new result is
  /// complete.
  bool overwrite = false;
  /// zstd, snappy, gzip, lz4 or none.
  std::string compression = "zstd";
  /// A row group ends at this many rows ...
  int64_t row_group_rows = 1'000'000;
  /// ... or when its encoded columns take this many bytes of memory (less when the job lends a writer less), whichever comes first.
  int64_t row_group_bytes = int64_t{64} << 20;
  /// Directory form: a writer goes on in a new file once its file has about this size. 0 = no bound.
  int64_t max_file_bytes = 0;
};

class ParquetSink final : public Sink {
 public:
  /// Checks the options; touches no file.
  static arrow::Result<std::shared_ptr<const ParquetSink>> Make(ParquetSinkOptions options);

  Lineage lineage() const override;
  int max_writers() const override;
  arrow::Status SupportsCheckpoints() const override;
  /// Makes and removes an empty file beside or in the target, to see that it may.
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

  const ParquetSinkOptions& options() const { return options_; }
  bool single_file() const { return single_file_; }

 private:
  ParquetSink(ParquetSinkOptions options, bool single_file) : options_(std::move(options)), single_file_(single_file) {}
  /// Where the files go.
  std::string directory() const;

  ParquetSinkOptions options_;  // path without trailing slashes
  const bool single_file_;
};

}  // namespace headrace
