// avro_convert: one job a line of standard input, its words separated by tabs; one line of answer each ("ok" or the error).
//   decode AVRO ARROW [READER_SCHEMA]        a container file into an Arrow file; READER_SCHEMA (a file) says which columns
//   encode ARROW AVRO CODEC DIALECT          an Arrow file into a container file; DIALECT is read, load or export
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <arrow/extension_type.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>

#include "headrace/avro/container_reader.h"
#include "headrace/avro/container_writer.h"
#include "headrace/avro/decoder.h"
#include "headrace/avro/table_schema.h"
#include "headrace/types/type_table.h"

namespace headrace::avro {
namespace {

arrow::Status DecodeFile(const std::vector<std::string>& words) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(words[1]));
  ARROW_ASSIGN_OR_RAISE(auto reader, ContainerReader::Open(file));
  auto wanted = reader->schema();
  if (words.size() > 3) {
    std::ifstream text(words[3]);
    std::stringstream content;
    content << text.rdbuf();
    ARROW_ASSIGN_OR_RAISE(wanted, Schema::Parse(content.str()));
  }
  ARROW_ASSIGN_OR_RAISE(auto table, FromAvroSchema(*wanted));
  ARROW_ASSIGN_OR_RAISE(auto target, ToArrowSchema(table));
  ARROW_ASSIGN_OR_RAISE(auto decoder, Decoder::Make(reader->schema(), target, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(auto out, arrow::io::FileOutputStream::Open(words[2]));
  ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeFileWriter(out, target));
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto block, reader->Next());
    if (!block) break;
    int64_t used = 0;
    ARROW_ASSIGN_OR_RAISE(auto batch, decoder->Decode(block->rows, block->row_count, &used));
    if (used != static_cast<int64_t>(block->rows.size())) return arrow::Status::Invalid("bytes were left in a block");
    ARROW_RETURN_NOT_OK(batch->Validate());
    ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  }
  ARROW_RETURN_NOT_OK(writer->Close());
  return out->Close();
}

arrow::Status EncodeFile(const std::vector<std::string>& words) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(words[1]));
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(file));
  ARROW_ASSIGN_OR_RAISE(auto rows, reader->ToTable());
  ARROW_ASSIGN_OR_RAISE(auto table, FromArrowSchema(*rows->schema()));
  const Dialect dialect = words[4] == "read" ? Dialect::kStorageRead : words[4] == "load" ? Dialect::kLoadFile : Dialect::kExport;
  ARROW_ASSIGN_OR_RAISE(auto text, ToAvroSchema(table, {.dialect = dialect, .display_names = true}));
  ARROW_ASSIGN_OR_RAISE(auto schema, Schema::Parse(text));
  ARROW_ASSIGN_OR_RAISE(auto compression, CodecFromName(words[3]));
  SeededRandom random(1);
  ARROW_ASSIGN_OR_RAISE(auto writer,
                        ContainerWriter::Make(schema, rows->schema(), {.compression = compression, .block_bytes = 20'000}, &random));
  ARROW_ASSIGN_OR_RAISE(auto out, arrow::io::FileOutputStream::Open(words[2]));
  std::string bytes;
  arrow::TableBatchReader batches(*rows);
  while (true) {
    ARROW_ASSIGN_OR_RAISE(auto batch, batches.Next());
    if (batch == nullptr) break;
    ARROW_RETURN_NOT_OK(writer->Append(*batch, 0, batch->num_rows(), &bytes));
  }
  ARROW_RETURN_NOT_OK(writer->Finish(&bytes));
  ARROW_RETURN_NOT_OK(out->Write(bytes));
  return out->Close();
}

arrow::Status Job(const std::string& line) {
  std::vector<std::string> words;
  std::stringstream stream(line);
  for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
  if (words.size() >= 3 && words[0] == "decode") return DecodeFile(words);
  if (words.size() == 5 && words[0] == "encode") return EncodeFile(words);
  return arrow::Status::Invalid("no job: ", line);
}

}  // namespace
}  // namespace headrace::avro

int main() {
  // The columns' own form of JSON is text that is marked in the field's metadata, not an extension type.
  if (!arrow::UnregisterExtensionType("arrow.json").ok()) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    const arrow::Status status = headrace::avro::Job(line);
    std::string answer = status.ok() ? "ok" : status.ToString();
    std::replace(answer.begin(), answer.end(), '\n', ' ');
    std::cout << answer << std::endl;
  }
}
