#include "headrace/files/internal/source_state.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/state.pb.h"
#include "headrace/runtime/split_state.h"

namespace headrace {
namespace {

constexpr uint32_t kVersion = 1;
// A schema of 10,000 columns takes about a megabyte, a hundred thousand splits about twenty.
constexpr size_t kLongestState = size_t{256} << 20;

arrow::Status Corrupt(std::string_view what, std::string_view why) {
  return MakeError({.code = Code::kDataLoss, .service = "local files", .resource = std::string(what), .reason = "CORRUPT_STATE"},
                   fmt::format("the persisted {} is damaged: {}", what, why));
}

template <typename Message>
arrow::Result<Message> Parse(std::string_view what, std::string_view bytes) {
  Message message;
  if (bytes.size() > kLongestState || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Corrupt(what, "not a message of the right kind");
  }
  if (message.version() == 0) return Corrupt(what, "it has no version");
  if (message.version() != kVersion) {
    return Unsupported(std::string(what), fmt::format("the persisted {} has version {}, this program reads version {}: go on with the "
                                                      "release that wrote it",
                                                      what, message.version(), kVersion));
  }
  return message;
}

}  // namespace

std::string EncodeFilePart(const FilePart& part) {
  files::FileSplit message;
  message.set_version(kVersion);
  message.set_path(part.file.path);
  message.set_format(std::string(FileFormatName(part.file.kind.format)));
  message.set_compression(static_cast<uint32_t>(part.file.kind.compression));
  message.set_size(part.file.size);
  message.set_modified_ns(part.file.modified_ns);
  message.set_begin(part.begin);
  message.set_end(part.end);
  message.set_first_row(part.first_row);
  message.set_rows(part.rows);
  message.set_bytes(part.bytes);
  message.set_first_line(part.first_line);
  return message.SerializeAsString();
}

arrow::Result<FilePart> DecodeFilePart(std::string_view bytes) {
  constexpr std::string_view kWhat = "split of a file source";
  ARROW_ASSIGN_OR_RAISE(const auto message, Parse<files::FileSplit>(kWhat, bytes));
  const auto format = FileFormatFromName(message.format());
  if (!format) return Corrupt(kWhat, "its format is none");
  if (message.compression() > static_cast<uint32_t>(FileCompression::kZstd)) return Corrupt(kWhat, "its compression is none");
  if (message.path().empty() || message.path().find('\0') != std::string::npos) return Corrupt(kWhat, "it names no file");
  if (message.size() < 0 || message.begin() < 0 || message.end() < message.begin() || message.bytes() < 0) {
    return Corrupt(kWhat, "its numbers do not add up");
  }
  return FilePart{.file = {.path = message.path(),
                           .kind = {.format = *format, .compression = static_cast<FileCompression>(message.compression())},
                           .size = message.size(),
                           .modified_ns = message.modified_ns()},
                  .begin = message.begin(),
                  .end = message.end(),
                  .first_row = message.first_row(),
                  .first_line = message.first_line(),
                  .rows = message.rows(),
                  .bytes = message.bytes()};
}

std::string EncodeFilePlan(const FilePlanState& state) {
  files::FilePlan message;
  message.set_version(kVersion);
  message.set_planned(state.planned);
  message.set_schema(state.schema);
  message.set_files(state.files);
  message.set_bytes(state.bytes);
  message.set_rows(state.rows);
  WriteDescription(state.reads, &message);
  for (const Split& split : state.queue) WriteSplit(split, message.add_queue());
  return message.SerializeAsString();
}

arrow::Result<FilePlanState> DecodeFilePlan(std::string_view bytes) {
  constexpr std::string_view kWhat = "plan of a file source";
  ARROW_ASSIGN_OR_RAISE(const auto message, Parse<files::FilePlan>(kWhat, bytes));
  if (message.planned() && message.schema().empty()) return Corrupt(kWhat, "it is planned but has no schema");
  if (!message.planned() && message.queue_size() > 0) return Corrupt(kWhat, "it is not planned but has splits");
  FilePlanState state{.planned = message.planned(),
                      .schema = message.schema(),
                      .files = message.files(),
                      .bytes = message.bytes(),
                      .rows = message.rows(),
                      .reads = ReadDescription(message)};
  for (const auto& pending : message.queue()) state.queue.push_back(ReadSplit(pending));
  return state;
}

arrow::Result<int64_t> ParseFilePosition(std::string_view text) {
  if (text.empty()) return 0;
  int64_t rows = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (error != std::errc() || end != text.data() + text.size() || rows < 0)
    return Corrupt("position of a file source", "it is no number of rows");
  return rows;
}

}  // namespace headrace
