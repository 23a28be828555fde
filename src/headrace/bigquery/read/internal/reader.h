// Reads one stream of a session: responses from a Receiver, decoded in Next, handed out in bounded batches.
//
// Positions are StreamPosition texts: rows from the start of the stream, which are the same rows of the near part after a cut.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "headrace/bigquery/read/internal/receiver.h"
#include "headrace/bigquery/read/internal/row_decoder.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

class StreamReader final : public SplitReader {
 public:
  /// Starts to receive at once. `options` is shared with the source.
  static arrow::Result<std::unique_ptr<StreamReader>> Open(std::shared_ptr<rpc::ChannelPool> pool,
                                                           std::shared_ptr<const SourceOptions> options, const JobContext& context,
                                                           const std::shared_ptr<arrow::Schema>& schema, const Split& split,
                                                           std::shared_ptr<SharedByReaders> shared);

  arrow::Result<ReadResult> Next() override;
  /// By SplitReadStream. A split that ends at a row is not cut.
  void RequestCut(double fraction) override;
  arrow::Result<std::string> PositionAt(const Batch& batch, int64_t row) override;
  SplitProgress Progress() const override;
  void Cancel() override { receiver_.Cancel(); }

 private:
  StreamReader(std::shared_ptr<rpc::ChannelPool> pool, std::shared_ptr<const SourceOptions> options, const JobContext& context,
               StreamState stream, const std::shared_ptr<arrow::Schema>& schema, StreamPosition start, int64_t end_row,
               double estimated_bytes, std::unique_ptr<RowDecoder> decoder, std::shared_ptr<SharedByReaders> shared);
  /// Takes the next response into rows_; an answer of Next when a cut or the end comes instead.
  arrow::Result<std::optional<ReadResult>> Load();
  /// The error of a response that was received whole and could not be made rows of.
  arrow::Status Undecodable(const arrow::Status& status) const;
  arrow::Status LoadRows(Received* received);
  Cut MakeCut(const StreamCut& cut);
  /// The rows of a response; null when it has none.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Decode(Received* received);
  arrow::Result<Batch> Slice();
  ReadResult Finish();
  void SetFraction(double fraction);

  const std::shared_ptr<const SourceOptions> options_;
  const JobContext context_;
  StreamState stream_;  // the near part after a cut
  const int64_t end_row_;
  double estimated_bytes_;  // of the whole of stream_
  std::unique_ptr<RowDecoder> decoder_;

  int64_t delivered_;                         // rows handed over, from the start of the stream
  double near_share_ = 0;                     // of a cut that was answered, until it is applied
  double fraction_before_;                    // at the start of the current response, for positions inside it
  std::shared_ptr<arrow::RecordBatch> rows_;  // the current response
  int64_t first_ = 0;                         // its next row
  bool whole_fits_ = false;
  double response_start_ = 0;
  double response_end_ = 0;
  bool response_told_ = false;  // where it ends
  int64_t wire_bytes_ = 0;
  MemoryReservation memory_;
  std::string last_position_;   // of the latest batch
  double last_start_ = 0;       // and where the response that it came from began
  bool fractions_rise_ = true;  // else positions carry none
  bool told_full_stream_ = false;

  mutable std::mutex progress_mutex_;
  double fraction_ = 0;

  Receiver receiver_;  // last: its thread ends first
};

}  // namespace headrace::bigquery
