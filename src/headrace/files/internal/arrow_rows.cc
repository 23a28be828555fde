#include "headrace/files/internal/arrow_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/types/schema.h"
#include "headrace/types/untrusted.h"

namespace headrace {
namespace {

arrow::ipc::IpcReadOptions ReadOptions() {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;  // readers of splits are threads already
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

/// Only the columns of the result are read.
arrow::ipc::IpcReadOptions ReadOptionsFor(const arrow::Schema& file, const arrow::Schema& result) {
  auto options = ReadOptions();
  for (int i = 0; i < file.num_fields(); ++i) {
    const bool wanted = std::any_of(result.fields().begin(), result.fields().end(),
                                    [&](const auto& field) { return SameColumnName(field->name(), file.field(i)->name()); });
    if (wanted) options.included_fields.push_back(i);
  }
  if (options.included_fields.size() == static_cast<size_t>(file.num_fields())) options.included_fields.clear();
  return options;
}

/// Batches of untrusted files: lengths, offsets and indexes are checked before anything relies on them.
arrow::Status CheckBatch(const arrow::RecordBatch& batch, const std::string& path) {
  ARROW_RETURN_NOT_OK(ExplainFileError(CheckUntrusted(batch), path));
  ForgetNullCounts(batch);
  return arrow::Status::OK();
}

arrow::Result<FoundFile> LookAtArrowFile(const FileAccess& access, const FileIdentity& file) {
  ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenFile(file));
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(opened, ReadOptions()));
  FoundFile found;
  ARROW_ASSIGN_OR_RAISE(found.schema, CanonicalFileSchema(reader->schema(), file.path));
  const int64_t batches = reader->num_record_batches();
  const int64_t parts =
      std::clamp<int64_t>(file.size / access.options->split_bytes.value_or(kDefaultSplitBytes) + 1, 1, std::max<int64_t>(batches, 1));
  for (int64_t i = 0; i < parts && batches > 0; ++i) {
    found.parts.push_back({.file = file, .begin = batches * i / parts, .end = batches * (i + 1) / parts, .bytes = file.size / parts});
  }
  return found;
}

arrow::Result<FoundFile> LookAtArrowStream(const FileAccess& access, const FileIdentity& file) {
  ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenStream(file, /*look=*/true));
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(opened, ReadOptions()));
  FoundFile found;
  ARROW_ASSIGN_OR_RAISE(found.schema, CanonicalFileSchema(reader->schema(), file.path));
  found.parts.push_back({.file = file, .first_row = 0, .bytes = file.size});
  return found;
}

}  // namespace

arrow::Result<std::unique_ptr<RowStream>> ArrowFileRows::Open(const FileAccess& access, const FilePart& part,
                                                              std::shared_ptr<arrow::Schema> schema) {
  std::unique_ptr<ArrowFileRows> rows(new ArrowFileRows(part, std::move(schema)));
  auto open = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto file, access.OpenFile(part.file));
    ARROW_ASSIGN_OR_RAISE(auto footer, arrow::ipc::RecordBatchFileReader::Open(file, ReadOptions()));
    ARROW_ASSIGN_OR_RAISE(rows->file_, arrow::ipc::RecordBatchFileReader::Open(file, ReadOptionsFor(*footer->schema(), *rows->schema_)));
    if (part.begin >= 0 && part.begin <= part.end && part.end <= footer->num_record_batches()) return arrow::Status::OK();
    return arrow::Status::Invalid("it has ", footer->num_record_batches(), " record batches, the plan says ", part.begin, " to ", part.end);
  };
  ARROW_RETURN_NOT_OK(ExplainFileError(open(), part.file.path));
  return rows;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowFileRows::Next() {
  while (part_.begin < part_.end) {
    auto batch = file_->ReadRecordBatch(static_cast<int>(part_.begin++));
    ARROW_RETURN_NOT_OK(ExplainFileError(batch.status(), part_.file.path));
    if ((*batch)->num_rows() == 0) continue;
    ARROW_RETURN_NOT_OK(CheckBatch(**batch, part_.file.path));
    // How many rows lie before it is not known without reading them: the row in an error is that of the record batch.
    auto rows = ToResultColumns(*batch, schema_, part_.file.path);
    if (!rows.ok()) return WithContext(rows.status(), fmt::format("record batch {} (the first is 0)", part_.begin - 1));
    return rows;
  }
  return nullptr;
}

/// Knows whether the end of the bytes was met: Arrow's reader does not say whether it was that, or a marker, that ended the stream. It asks
/// for no byte behind a marker.
class ArrowStreamRows::Input final : public arrow::io::InputStream {
 public:
  explicit Input(std::shared_ptr<arrow::io::InputStream> below) : below_(std::move(below)) {}
  ~Input() override = default;

  bool met_end() const { return met_end_; }

  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, below_->Read(size, out));
    met_end_ = met_end_ || got < size;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, below_->Read(size));
    met_end_ = met_end_ || buffer->size() < size;
    return buffer;
  }
  arrow::Result<int64_t> Tell() const override { return below_->Tell(); }
  arrow::Status Close() override { return below_->Close(); }
  bool closed() const override { return below_->closed(); }

 private:
  const std::shared_ptr<arrow::io::InputStream> below_;
  bool met_end_ = false;
};

ArrowStreamRows::ArrowStreamRows(std::string path, std::shared_ptr<arrow::Schema> schema)
    : path_(std::move(path)), schema_(std::move(schema)) {}
ArrowStreamRows::~ArrowStreamRows() = default;

arrow::Result<std::unique_ptr<RowStream>> ArrowStreamRows::Open(const FileAccess& access, const FilePart& part,
                                                                std::shared_ptr<arrow::Schema> schema) {
  std::unique_ptr<ArrowStreamRows> rows(new ArrowStreamRows(part.file.path, std::move(schema)));
  auto open = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto stream, access.OpenStream(part.file, /*look=*/false));
    rows->input_ = std::make_shared<Input>(std::move(stream));
    return arrow::ipc::RecordBatchStreamReader::Open(rows->input_, ReadOptions()).Value(&rows->stream_);
  };
  ARROW_RETURN_NOT_OK(ExplainFileError(open(), part.file.path));
  return rows;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowStreamRows::Next() {
  std::shared_ptr<arrow::RecordBatch> batch;
  do {
    ARROW_RETURN_NOT_OK(ExplainFileError(stream_->ReadNext(&batch), path_));
    if (batch == nullptr) {
      ARROW_RETURN_NOT_OK(ExplainFileError(CheckEnd(), path_));
      return nullptr;
    }
  } while (batch->num_rows() == 0);
  ARROW_RETURN_NOT_OK(CheckBatch(*batch, path_));
  const int64_t first_row = std::exchange(next_row_, next_row_ + batch->num_rows());
  return ToResultColumns(batch, schema_, path_, first_row);
}

arrow::Status ArrowStreamRows::CheckEnd() {
  if (input_->met_end()) return arrow::Status::OK();
  char behind = 0;
  ARROW_ASSIGN_OR_RAISE(const int64_t got, input_->Read(1, &behind));
  if (got == 0) {
    has_marker_ = true;
    return arrow::Status::OK();
  }
  return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path_, .reason = "UNREADABLE_FILE"},
                   fmt::format("{} goes on behind the end marker of its Arrow stream, and no reader of streams looks there: if several "
                               "streams were put together, read them as files of their own",
                               path_));
}

std::string ArrowStreamRows::warning() const {
  if (has_marker_) return {};
  return fmt::format("{} has no end marker: whoever wrote it may have ended before it was done", path_ == "-" ? "standard input" : path_);
}

arrow::Result<FoundFile> LookAtArrow(const FileAccess& access, const FileIdentity& file) {
  auto found = file.kind.format == FileFormat::kArrow ? LookAtArrowFile(access, file) : LookAtArrowStream(access, file);
  ARROW_RETURN_NOT_OK(ExplainFileError(found.status(), file.path));
  return found;
}

}  // namespace headrace
