#include "headrace/files/internal/parquet_writer.h"

#include <utility>

#include "headrace/files/internal/part_name.h"
#include "headrace/files/internal/sink_state.h"

namespace headrace {

ParquetSinkWriter::ParquetSinkWriter(FileSystem* files, ParquetWriterSettings settings, std::shared_ptr<arrow::Schema> schema,
                                     std::vector<ManifestFile> inherited)
    : files_(files),
      settings_(std::move(settings)),
      schema_(std::move(schema)),
      prepared_(std::move(inherited)),
      checkpoint_(settings_.first_checkpoint) {}

std::string ParquetSinkWriter::TempPath(const std::string& name) const {
  return JoinPath(settings_.directory, settings_.single_name.empty() ? TempPartName(name) : TempSingleName(name, settings_.run_id));
}

arrow::Status ParquetSinkWriter::OpenFile() {
  name_ =
      settings_.single_name.empty() ? PartName(settings_.run_id, settings_.writer_index, checkpoint_, sequence_++) : settings_.single_name;
  ARROW_ASSIGN_OR_RAISE(file_, ParquetFile::Create(files_, TempPath(name_), schema_, settings_.encoding));
  return arrow::Status::OK();
}

arrow::Status ParquetSinkWriter::CloseFile() {
  auto closed = file_->Close();
  if (!closed.ok()) {
    Abort();
    return closed.status();
  }
  file_.reset();
  closed->name = name_;
  closed_bytes_ += closed->bytes;
  closed_.push_back(*std::move(closed));
  return arrow::Status::OK();
}

arrow::Status ParquetSinkWriter::Write(const Batch& batch) {
  if (batch.rows->num_rows() == 0) return arrow::Status::OK();
  if (file_ == nullptr) ARROW_RETURN_NOT_OK(OpenFile());
  if (auto status = file_->Write(*batch.rows); !status.ok()) {
    Abort();  // gives a full disk its space back
    return status;
  }
  written_ += batch.rows->num_rows();
  const bool full = settings_.max_file_bytes > 0 && file_->size() >= settings_.max_file_bytes;
  return full ? CloseFile() : arrow::Status::OK();
}

arrow::Result<std::vector<Committable>> ParquetSinkWriter::PrepareCommit() {
  if (file_ != nullptr) ARROW_RETURN_NOT_OK(CloseFile());
  if (closed_.empty()) return std::vector<Committable>();
  // The checkpoint will name these files: their directory entries must be as durable as their content.
  ARROW_RETURN_NOT_OK(files_->SyncDirectory(settings_.directory));
  std::vector<Committable> committables;
  for (auto& file : closed_) {
    committables.push_back(EncodeCommittable(file));
    prepared_.push_back(std::move(file));
  }
  closed_.clear();
  return committables;
}

arrow::Result<std::string> ParquetSinkWriter::Snapshot(uint64_t checkpoint) {
  checkpoint_ = checkpoint + 1;
  sequence_ = 0;
  return EncodeWriterState(prepared_);
}

int64_t ParquetSinkWriter::bytes_written() const { return closed_bytes_ + (file_ == nullptr ? 0 : file_->size()); }

void ParquetSinkWriter::Abort() {
  // No checkpoint can name these. Those that were prepared may be named: RemoveOrphans or Abandon knows.
  if (file_ != nullptr) {
    file_.reset();
    (void)files_->Remove(TempPath(name_));
  }
  for (const auto& file : closed_) (void)files_->Remove(TempPath(file.name));
  closed_.clear();
}

}  // namespace headrace
