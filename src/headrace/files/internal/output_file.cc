#include "headrace/files/internal/output_file.h"

#include <utility>

#include "headrace/base/fail_point.h"

namespace headrace {

arrow::Result<std::unique_ptr<OutputFile>> OutputFile::Create(FileSystem* files, const std::string& path,
                                                              const std::shared_ptr<arrow::Schema>& schema, const FileEncoding& encoding) {
  ARROW_ASSIGN_OR_RAISE(auto writable, files->Create(path));
  FailPoint("file.temp_created");
  auto file = Over(std::move(writable), schema, encoding);
  if (!file.ok()) (void)files->Remove(path);  // the first error is the one to report
  return file;
}

arrow::Result<std::unique_ptr<OutputFile>> OutputFile::Over(std::unique_ptr<WritableFile> writable,
                                                            const std::shared_ptr<arrow::Schema>& schema, const FileEncoding& encoding) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->out_ = std::make_shared<HashingOutputStream>(std::move(writable));
  // Writes the first bytes already.
  ARROW_ASSIGN_OR_RAISE(file->writer_, MakeFormatWriter(encoding, schema, file->out_));
  return file;
}

OutputFile::~OutputFile() { Abort(); }

arrow::Status OutputFile::Write(const arrow::RecordBatch& batch) {
  ARROW_RETURN_NOT_OK(writer_->Write(batch));
  rows_ += batch.num_rows();
  return arrow::Status::OK();
}

arrow::Result<ManifestFile> OutputFile::Close() {
  ARROW_RETURN_NOT_OK(writer_->Finish());
  ARROW_ASSIGN_OR_RAISE(int64_t bytes, out_->Tell());
  ARROW_RETURN_NOT_OK(out_->Close());
  ARROW_ASSIGN_OR_RAISE(auto sha256, out_->Sha256());
  return ManifestFile{.rows = rows_, .bytes = bytes, .sha256 = std::move(sha256)};
}

void OutputFile::Abort() {
  if (out_ != nullptr) (void)out_->Abort();
  writer_.reset();
}

int64_t OutputFile::size() const { return out_->Tell().ValueOr(0) + writer_->held(); }

}  // namespace headrace
