#include "headrace/files/internal/line_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/row_stream.h"

namespace headrace {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(std::shared_ptr<arrow::io::InputStream> input, std::string path, int64_t offset)
    : input_(std::move(input)), path_(std::move(path)), base_(offset) {}

arrow::Status LineReader::Refill() {
  base_ += static_cast<int64_t>(next_);
  buffer_.erase(0, std::exchange(next_, 0));
  const size_t held = buffer_.size();
  const size_t wanted = std::max(kReadBytes, held);  // as much again as is held: a long line is searched from its beginning again
  buffer_.resize(held + wanted);
  auto got = input_->Read(static_cast<int64_t>(wanted), buffer_.data() + held);
  ARROW_RETURN_NOT_OK(ExplainFileError(got.status(), path_));
  buffer_.resize(held + static_cast<size_t>(*got));
  at_end_ = *got == 0;
  if (base_ == 0 && held == 0 && std::string_view(buffer_).starts_with(kByteOrderMark)) {
    base_ = static_cast<int64_t>(kByteOrderMark.size());
    buffer_.erase(0, kByteOrderMark.size());
  }
  return arrow::Status::OK();
}

arrow::Result<bool> LineReader::Next() {
  while (true) {
    const auto rest = std::string_view(buffer_).substr(next_);
    const size_t feed = rest.find('\n');
    if (feed == std::string_view::npos && !at_end_) {
      if (static_cast<int64_t>(rest.size()) > kMaxLineBytes) {
        return MakeError(
            {.code = Code::kInvalidArgument, .service = "local files", .resource = path_, .reason = "BAD_ROW"},
            fmt::format("{}: the line that begins at byte {} is longer than {} MiB", path_, end_offset(), kMaxLineBytes >> 20));
      }
      ARROW_RETURN_NOT_OK(Refill());
      continue;
    }
    if (rest.empty()) return false;
    line_ = rest.substr(0, feed);
    next_ += feed == std::string_view::npos ? rest.size() : feed + 1;
    ++lines_;
    if (line_.find_first_not_of(" \t\r") != std::string_view::npos) return true;
  }
}

}  // namespace headrace
