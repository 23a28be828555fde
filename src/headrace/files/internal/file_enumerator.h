// Plans a read of files: which files, one schema for all of them, and their parts as splits.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/files/internal/file_access.h"
#include "headrace/files/internal/file_list.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/files/internal/source_state.h"
#include "headrace/runtime/source.h"

namespace headrace {

/// InvalidOption for an option that another format has.
arrow::Status CheckOptionsOfFormat(const FileSourceOptions& options, FileFormat format);

class FileEnumerator final : public SplitEnumerator {
 public:
  /// `state` is a Snapshot, or nothing for a new job.
  static arrow::Result<std::unique_ptr<SplitEnumerator>> Make(FileAccess access, const JobContext& context,
                                                              std::optional<std::string_view> state);

  arrow::Status Start() override;
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Result<NextSplit> Next() override;
  void AddSplitsBack(std::vector<Split> splits) override;
  void AddSuccessors(std::vector<Split> splits) override { AddSplitsBack(std::move(splits)); }
  int64_t queued() const override { return static_cast<int64_t>(state_.queue.size()); }
  int64_t estimated_rows() const override { return state_.rows; }
  std::map<std::string, std::string> facts() const override;
  std::string Snapshot() const override { return EncodeFilePlan(state_); }
  void Cancel() override {
    stop_.request_stop();
    access_.input->Cancel();  // Start may wait for the first bytes of standard input
  }

 private:
  FileEnumerator(FileAccess access, const JobContext& context) : access_(std::move(access)), context_(context) {}
  /// All columns of all files, and their parts. A null schema when there is no file.
  arrow::Result<FoundFile> Look(const FileList& list, FileFormat format) const;
  /// Of text files: what the option or the manifest says; null when nothing does.
  arrow::Result<std::shared_ptr<arrow::Schema>> KnownSchema(const FileList& list) const;
  arrow::Status Plan(std::shared_ptr<arrow::Schema> schema, const std::vector<FilePart>& parts);

  const FileAccess access_;
  const JobContext context_;
  std::stop_source stop_;
  FilePlanState state_;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace headrace
