#include "headrace/files/internal/arrow_format.h"

#include <utility>

namespace headrace {

arrow::Result<std::unique_ptr<FormatWriter>> ArrowFormatWriter::Make(const FileEncoding& encoding,
                                                                     const std::shared_ptr<arrow::Schema>& schema,
                                                                     const std::shared_ptr<arrow::io::OutputStream>& out) {
  ARROW_ASSIGN_OR_RAISE(auto chunked, ChunkedOutput::Make(out, FileCompression::kNone));
  std::unique_ptr<ArrowFormatWriter> made(new ArrowFormatWriter(chunked));
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.memory_pool = &made->pool_;
  options.use_threads = false;  // the sink's writers are threads already
  if (encoding.codec != arrow::Compression::UNCOMPRESSED) {
    ARROW_ASSIGN_OR_RAISE(options.codec, arrow::util::Codec::Create(encoding.codec));
  }
  if (encoding.kind.format == FileFormat::kArrow) {
    ARROW_ASSIGN_OR_RAISE(made->writer_, arrow::ipc::MakeFileWriter(chunked, schema, options));
  } else {
    ARROW_ASSIGN_OR_RAISE(made->writer_, arrow::ipc::MakeStreamWriter(chunked, schema, options));
  }
  return made;
}

arrow::Status ArrowFormatWriter::Write(const arrow::RecordBatch& batch) { return writer_->WriteRecordBatch(batch); }

arrow::Status ArrowFormatWriter::Finish() {
  ARROW_RETURN_NOT_OK(writer_->Close());
  return out_->Finish();
}

}  // namespace headrace
