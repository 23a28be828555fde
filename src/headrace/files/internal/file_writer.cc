#include "headrace/files/internal/file_writer.h"

#include <utility>

#include "headrace/files/internal/part_name.h"
#include "headrace/files/internal/sink_state.h"
#include "headrace/files/internal/standard_stream.h"

namespace headrace {

FileSinkWriter::FileSinkWriter(FileSystem* files, FileWriterSettings settings, std::shared_ptr<arrow::Schema> schema,
                               std::vector<ManifestFile> inherited)
    : files_(files),
      settings_(std::move(settings)),
      schema_(std::move(schema)),
      prepared_(std::move(inherited)),
      checkpoint_(settings_.first_checkpoint),
      interrupt_(settings_.output_descriptor >= 0 ? std::make_shared<StreamInterrupt>() : nullptr) {}

std::string FileSinkWriter::TempPath(const std::string& name) const {
  return JoinPath(settings_.directory, settings_.single_name.empty() ? TempPartName(name) : TempSingleName(name, settings_.run_id));
}

void FileSinkWriter::Cancel() {
  if (interrupt_ != nullptr) interrupt_->Set();
}

arrow::Status FileSinkWriter::OpenFile() {
  if (settings_.output_descriptor >= 0) {
    name_ = settings_.single_name;
    if (output_ended_) return Unsupported("checkpoint", "standard output was ended by a checkpoint and cannot be continued");
    return OutputFile::Over(OpenOutputDescriptor(settings_.output_descriptor, interrupt_), schema_, settings_.encoding).Value(&file_);
  }
  name_ = settings_.single_name.empty() ? PartName(settings_.run_id, settings_.writer_index, checkpoint_, sequence_++, settings_.extension)
                                        : settings_.single_name;
  ARROW_ASSIGN_OR_RAISE(file_, OutputFile::Create(files_, TempPath(name_), schema_, settings_.encoding));
  return arrow::Status::OK();
}

arrow::Status FileSinkWriter::CloseFile() {
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

arrow::Status FileSinkWriter::Write(const Batch& batch) {
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

arrow::Result<std::vector<Committable>> FileSinkWriter::PrepareCommit() {
  if (file_ != nullptr) ARROW_RETURN_NOT_OK(CloseFile());
  if (closed_.empty()) return std::vector<Committable>();
  if (settings_.output_descriptor >= 0) {  // whoever reads it has the rows already
    output_ended_ = true;
    prepared_.push_back(std::move(closed_.front()));
    closed_.clear();
    return std::vector<Committable>();
  }
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

arrow::Result<std::string> FileSinkWriter::Snapshot(uint64_t checkpoint) {
  checkpoint_ = checkpoint + 1;
  sequence_ = 0;
  return EncodeWriterState(prepared_);
}

int64_t FileSinkWriter::bytes_written() const { return closed_bytes_ + (file_ == nullptr ? 0 : file_->size()); }

void FileSinkWriter::Abort() {
  if (settings_.output_descriptor >= 0) {
    file_.reset();
    return;
  }
  // No checkpoint can name these. Those that were prepared may be named: RemoveOrphans or Abandon knows.
  if (file_ != nullptr) {
    file_.reset();
    (void)files_->Remove(TempPath(name_));
  }
  for (const auto& file : closed_) (void)files_->Remove(TempPath(file.name));
  closed_.clear();
}

}  // namespace headrace
