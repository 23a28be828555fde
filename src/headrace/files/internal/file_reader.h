// Reads one split of a file source: opens the part, passes over the rows that were handed over before, hands out bounded batches.
//
// It never answers a cut: parts are small, and a position is a number of rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "headrace/files/internal/file_access.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/runtime/source.h"

namespace headrace {

class FileReader final : public SplitReader {
 public:
  static arrow::Result<std::unique_ptr<SplitReader>> Open(FileAccess access, const JobContext& context,
                                                          const std::shared_ptr<arrow::Schema>& schema, const Split& split);

  arrow::Result<ReadResult> Next() override;
  void RequestCut(double /*fraction*/) override {}
  arrow::Result<std::string> PositionAt(const Batch& batch, int64_t row) override;
  SplitProgress Progress() const override { return {.fraction = fraction_.load()}; }
  void Cancel() override;

 private:
  FileReader(FileAccess access, const JobContext& context, FilePart part, int64_t position, int64_t end_row);
  /// Takes the next rows into rows_, having passed over those before the position; false at the end.
  arrow::Result<bool> Load();
  arrow::Result<Batch> Slice();
  /// `at_end`: of the part, not of the rows that were asked for.
  arrow::Result<ReadResult> Finish(bool at_end);
  arrow::Status Cancelled() const;

  const FileAccess access_;
  const JobContext context_;
  const FilePart part_;
  const int64_t end_row_;
  std::stop_source stop_;
  std::unique_ptr<RowStream> stream_;

  int64_t passed_ = 0;  // rows of the split that the stream gave
  int64_t delivered_;   // rows of the split that were handed over
  std::shared_ptr<arrow::RecordBatch> rows_;
  MemoryReservation memory_;
  int64_t largest_ = int64_t{1} << 20;  // bytes of the largest recent rows; before there were any, a guess
  int64_t bytes_read_ = 0;              // of the file, as the stream says
  int64_t wire_bytes_ = 0;              // read and not yet told with a batch
  std::atomic<double> fraction_{0};
};

}  // namespace headrace
