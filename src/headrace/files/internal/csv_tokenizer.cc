#include "headrace/files/internal/csv_tokenizer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/row_stream.h"

namespace headrace {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvTokenizer::CsvTokenizer(std::shared_ptr<arrow::io::InputStream> input, std::string path, int64_t offset, int64_t first_line)
    : input_(std::move(input)), path_(std::move(path)), base_(offset), next_line_(first_line) {}

arrow::Status CsvTokenizer::Refill() {
  if (next_ > 0) {
    base_ += static_cast<int64_t>(next_);
    buffer_.erase(0, next_);
    next_ = 0;
  }
  const size_t held = buffer_.size();
  // A long record is scanned from its beginning again: reading as much again as is held keeps that linear.
  const size_t wanted = std::max(kReadBytes, held);
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

arrow::Status CsvTokenizer::QuoteError(size_t quote, std::string_view why) const {
  const auto before = std::string_view(buffer_).substr(next_, quote - next_);
  const int64_t line = next_line_ + std::count(before.begin(), before.end(), '\n');
  return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path_, .reason = "BAD_ROW"},
                   fmt::format("{}, line {}, field {}: {}", path_, line, pieces_.size() + 1, why));
}

// From an opening quote to behind the closing one.
arrow::Result<CsvTokenizer::Scan> CsvTokenizer::ScanQuoted(size_t* position) {
  const size_t quote = *position;
  Piece piece{.begin = quote + 1, .end = 0, .quoted = true, .doubled = false};
  size_t at = piece.begin;
  while (true) {
    const size_t found = buffer_.find('"', at);
    if (found == buffer_.npos) {
      if (!at_end_) return Scan::kNeedMore;
      return QuoteError(quote, "the quote that opens here is never closed");
    }
    at = found;
    if (at + 1 == buffer_.size() && !at_end_) return Scan::kNeedMore;
    if (at + 1 == buffer_.size() || buffer_[at + 1] != '"') break;
    piece.doubled = true;
    at += 2;
  }
  piece.end = at++;
  if (at < buffer_.size() && buffer_[at] == '\r') {
    if (at + 1 == buffer_.size() && !at_end_) return Scan::kNeedMore;
    if (at + 1 < buffer_.size() && buffer_[at + 1] == '\n') ++at;
  }
  if (at < buffer_.size() && buffer_[at] != ',' && buffer_[at] != '\n') {
    return QuoteError(quote,
                      "there is text behind the quote that closes the field that opens here; a quote inside a quoted field is doubled");
  }
  pieces_.push_back(piece);
  *position = at;
  return Scan::kRecord;
}

arrow::Result<CsvTokenizer::Scan> CsvTokenizer::ScanRecord() {
  pieces_.clear();
  size_t at = next_;
  while (true) {
    if (at < buffer_.size() && buffer_[at] == '"') {
      ARROW_ASSIGN_OR_RAISE(auto scanned, ScanQuoted(&at));
      if (scanned == Scan::kNeedMore) return scanned;
    } else {
      const size_t begin = at;
      while (at < buffer_.size() && buffer_[at] != ',' && buffer_[at] != '\n') ++at;
      if (at == buffer_.size() && !at_end_) return Scan::kNeedMore;
      const bool carriage = (at == buffer_.size() || buffer_[at] == '\n') && at > begin && buffer_[at - 1] == '\r';
      pieces_.push_back({.begin = begin, .end = carriage ? at - 1 : at, .quoted = false, .doubled = false});
    }
    if (at == buffer_.size() && !at_end_) return Scan::kNeedMore;
    if (at == buffer_.size() || buffer_[at] == '\n') break;
    ++at;  // the comma
  }
  line_ = next_line_;
  record_offset_ = base_ + static_cast<int64_t>(next_);
  const size_t end = std::min(at + 1, buffer_.size());
  next_line_ += std::count(buffer_.begin() + static_cast<std::ptrdiff_t>(next_), buffer_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  next_ = end;
  MakeFields();
  return Scan::kRecord;
}

void CsvTokenizer::MakeFields() {
  fields_.clear();
  unescaped_.clear();
  size_t doubled = 0;
  for (const auto& piece : pieces_) doubled += piece.doubled ? piece.end - piece.begin : 0;
  unescaped_.reserve(doubled);  // views into it must stay
  for (const auto& piece : pieces_) {
    std::string_view text = std::string_view(buffer_).substr(piece.begin, piece.end - piece.begin);
    if (piece.doubled) {
      const size_t begin = unescaped_.size();
      for (size_t i = 0; i < text.size(); ++i) {
        unescaped_ += text[i];
        if (text[i] == '"') ++i;  // the second of two
      }
      text = std::string_view(unescaped_).substr(begin);
    }
    fields_.push_back({.text = text, .quoted = piece.quoted});
  }
}

arrow::Result<bool> CsvTokenizer::Next() {
  while (true) {
    if (next_ == buffer_.size() && at_end_) return false;
    if (next_ < buffer_.size()) {
      ARROW_ASSIGN_OR_RAISE(auto scanned, ScanRecord());
      if (scanned == Scan::kRecord) return true;
      if (static_cast<int64_t>(buffer_.size() - next_) > kMaxRecordBytes) {
        return MakeError({.code = Code::kInvalidArgument, .service = "local files", .resource = path_, .reason = "BAD_ROW"},
                         fmt::format("{}, line {}: the row that begins here is longer than {} MiB; is a quote not closed?", path_,
                                     next_line_, kMaxRecordBytes >> 20));
      }
    }
    ARROW_RETURN_NOT_OK(Refill());
  }
}

}  // namespace headrace
