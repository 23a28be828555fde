#include "headrace/files/internal/avro_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/avro/table_schema.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Result<FoundFile> Look(const FileAccess& access, const FileIdentity& file) {
  ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenFile(file));
  ARROW_ASSIGN_OR_RAISE(auto blocks, avro::ContainerReader::Open(opened));
  FoundFile found;
  ARROW_ASSIGN_OR_RAISE(auto table, avro::FromAvroSchema(*blocks->schema()));
  ARROW_ASSIGN_OR_RAISE(found.schema, ToArrowSchema(table));
  for (int64_t begin = 0; begin < file.size; begin += access.options->split_bytes.value_or(kDefaultSplitBytes)) {
    const int64_t end = std::min(file.size, begin + access.options->split_bytes.value_or(kDefaultSplitBytes));
    found.parts.push_back({.file = file, .begin = begin, .end = end, .bytes = end - begin});
  }
  return found;
}

}  // namespace

arrow::Result<std::unique_ptr<RowStream>> AvroRows::Open(const FileAccess& access, const FilePart& part,
                                                         const std::shared_ptr<arrow::Schema>& schema) {
  std::unique_ptr<AvroRows> rows(new AvroRows(part));
  auto open = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenFile(part.file));
    ARROW_ASSIGN_OR_RAISE(rows->blocks_, avro::ContainerReader::Open(opened));
    ARROW_ASSIGN_OR_RAISE(rows->decoder_, avro::Decoder::Make(rows->blocks_->schema(), schema, arrow::default_memory_pool()));
    return rows->blocks_->SetSplit(part.begin, part.end);
  };
  ARROW_RETURN_NOT_OK(ExplainFileError(open(), part.file.path));
  return rows;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> AvroRows::Next() {
  while (true) {
    auto block = blocks_->Next();
    ARROW_RETURN_NOT_OK(ExplainFileError(block.status(), part_.file.path));
    if (!block->has_value()) return nullptr;
    bytes_read_ = std::max((*block)->position - part_.begin, bytes_read_);
    int64_t used = 0;
    auto batch = decoder_->Decode((*block)->rows, (*block)->row_count, &used);
    if (!batch.ok()) {
      return ExplainFileError(WithContext(batch.status(), fmt::format("{}: block at byte {}", part_.file.path, (*block)->position)),
                              part_.file.path);
    }
    if (used != static_cast<int64_t>((*block)->rows.size())) {
      return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = part_.file.path, .reason = "UNREADABLE_FILE"},
                       fmt::format("{}: block at byte {}: its {} rows take {} bytes of {}{}", part_.file.path, (*block)->position,
                                   (*block)->row_count, used, (*block)->rows.size(), kDamagedFile));
    }
    if ((*batch)->num_rows() > 0) return batch;
  }
}

arrow::Result<FoundFile> LookAtAvro(const FileAccess& access, const FileIdentity& file) {
  auto found = Look(access, file);
  ARROW_RETURN_NOT_OK(ExplainFileError(found.status(), file.path));
  return found;
}

}  // namespace headrace
