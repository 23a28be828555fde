// Blocks of an Avro container file. One thread.
#pragma once

#include <memory>

#include "headrace/avro/container_reader.h"
#include "headrace/avro/decoder.h"
#include "headrace/files/internal/row_stream.h"

namespace headrace {

class AvroRows final : public RowStream {
 public:
  static arrow::Result<std::unique_ptr<RowStream>> Open(const FileAccess& access, const FilePart& part,
                                                        const std::shared_ptr<arrow::Schema>& schema);
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next() override;
  int64_t bytes_read() const override { return bytes_read_; }

 private:
  explicit AvroRows(FilePart part) : part_(std::move(part)) {}

  const FilePart part_;
  std::unique_ptr<avro::ContainerReader> blocks_;
  std::unique_ptr<avro::Decoder> decoder_;
  int64_t bytes_read_ = 0;
};

arrow::Result<FoundFile> LookAtAvro(const FileAccess& access, const FileIdentity& file);

}  // namespace headrace
