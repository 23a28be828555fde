#include "headrace/avro/container_writer.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "headrace/avro/internal/append_long.h"

namespace headrace::avro {

arrow::Result<std::unique_ptr<ContainerWriter>> ContainerWriter::Make(std::shared_ptr<const Schema> schema,
                                                                      std::shared_ptr<arrow::Schema> columns,
                                                                      const ContainerOptions& options, Random* random) {
  if (options.block_bytes <= 0) return InvalidOption("block_bytes", "block_bytes must be greater than zero");
  std::unique_ptr<ContainerWriter> writer(new ContainerWriter());
  std::map<std::string, std::string> metadata = options.metadata;
  for (const auto& [key, value] : options.metadata) {
    if (key.starts_with("avro.")) return InvalidOption("metadata", fmt::format("the key '{}' belongs to the format", key));
  }
  metadata["avro.schema"] = schema->ToJson();
  metadata["avro.codec"] = CodecName(options.compression);
  for (size_t at = 0; at < writer->sync_.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random->Next();
    std::memcpy(writer->sync_.data() + at, &bits, sizeof bits);
  }
  writer->header_ = std::string("Obj\x01");
  AppendLong(static_cast<int64_t>(metadata.size()), &writer->header_);
  for (const auto& [key, value] : metadata) {
    AppendSized(key, &writer->header_);
    AppendSized(value, &writer->header_);
  }
  AppendLong(0, &writer->header_);
  writer->header_.append(writer->sync_.data(), writer->sync_.size());
  writer->block_bytes_ = options.block_bytes;
  ARROW_ASSIGN_OR_RAISE(writer->codec_, BlockCodec::Make(options.compression, options.compression_level));
  ARROW_ASSIGN_OR_RAISE(writer->encoder_, Encoder::Make(std::move(schema), std::move(columns)));
  return writer;
}

arrow::Status ContainerWriter::Append(const arrow::RecordBatch& batch, int64_t first, int64_t count, std::string* out) {
  out->append(std::exchange(header_, {}));
  while (count > 0) {
    ARROW_ASSIGN_OR_RAISE(const int64_t fitted, encoder_->AppendUpTo(batch, first, count, block_bytes_, &rows_));
    row_count_ += fitted;
    first += fitted;
    count -= fitted;
    if (count > 0 || static_cast<int64_t>(rows_.size()) >= block_bytes_) ARROW_RETURN_NOT_OK(EndBlock(out));
  }
  return arrow::Status::OK();
}

arrow::Status ContainerWriter::Finish(std::string* out) {
  out->append(std::exchange(header_, {}));
  return EndBlock(out);
}

arrow::Status ContainerWriter::EndBlock(std::string* out) {
  if (row_count_ == 0) return arrow::Status::OK();
  ARROW_RETURN_NOT_OK(codec_->Compress(rows_, &packed_));
  AppendLong(row_count_, out);
  AppendSized(packed_, out);
  out->append(sync_.data(), sync_.size());
  rows_.clear();
  row_count_ = 0;
  return arrow::Status::OK();
}

}  // namespace headrace::avro
