// Looks at CSV and NDJSON files: their columns, and where they can be divided.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headrace/files/internal/csv_rows.h"
#include "headrace/files/internal/ndjson_rows.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/files/internal/type_guess.h"
#include "headrace/types/schema.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

/// Cancel is looked at so often.
constexpr int64_t kRowsBetweenLooks = 4096;

/// Reads CSV files to their ends: quotes with line feeds in them make every other way of dividing them a guess.
class CsvLook {
 public:
  CsvLook(const FileAccess& access, std::shared_ptr<arrow::Schema> known, const std::stop_token& stop)
      : access_(access), known_(std::move(known)), stop_(stop) {}

  arrow::Status Add(const FileIdentity& file) {
    // Of standard input only the header can be looked at, and its schema is known (FileSource::Make).
    ARROW_ASSIGN_OR_RAISE(auto header, HeaderOf(access_, file));
    ARROW_RETURN_NOT_OK(AddColumns(header, file));
    if (file.path == "-") {
      parts_.push_back({.file = file, .first_row = 0});
      return arrow::Status::OK();
    }
    const bool divisible = file.divisible();
    if (!divisible && known_ != nullptr) {
      parts_.push_back({.file = file, .first_row = 0, .bytes = file.size});
      return arrow::Status::OK();
    }
    return ReadThrough(file, header, divisible);
  }

  arrow::Result<FoundFile> Finish() {
    if (known_ != nullptr || names_.empty()) return FoundFile{known_, std::move(parts_)};
    TableSchema table;
    for (size_t i = 0; i < names_.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(auto kind, guesses_[i].Finish(names_[i]));
      table.fields.push_back({.name = names_[i], .kind = kind});
    }
    ARROW_RETURN_NOT_OK(ValidateSchema(table));
    FoundFile found;
    ARROW_ASSIGN_OR_RAISE(found.schema, ToArrowSchema(table));
    found.parts = std::move(parts_);
    return found;
  }

 private:
  /// Every file has the columns of the schema, or of the first file.
  arrow::Status AddColumns(const CsvHeader& header, const FileIdentity& file) {
    if (names_.empty() && known_ == nullptr) {
      names_ = header.names();
      guesses_.resize(names_.size());
      first_path_ = file.path;
    }
    arrow::FieldVector fields;
    for (const auto& name : names_) fields.push_back(arrow::field(name, arrow::utf8()));
    const auto wanted = known_ != nullptr ? known_ : arrow::schema(fields);
    ARROW_ASSIGN_OR_RAISE(places_, header.PlacesOf(*wanted, file.path));
    for (size_t i = 0; i < header.names().size(); ++i) {
      if (std::find(places_.begin(), places_.end(), i) != places_.end()) continue;
      return MakeError({.code = Code::kInvalidArgument,
                        .service = "local files",
                        .resource = file.path,
                        .reason = "SCHEMA_DIFFERS",
                        .column = header.names()[i]},
                       fmt::format("{} has a column {}, {} has none", file.path, header.names()[i],
                                   known_ != nullptr ? std::string("the schema") : first_path_));
    }
    return arrow::Status::OK();
  }

  arrow::Status ReadThrough(const FileIdentity& file, const CsvHeader& header, bool divisible) {
    ARROW_ASSIGN_OR_RAISE(auto stream, access_.OpenStream(file, /*look=*/false));
    CsvTokenizer tokenizer(std::move(stream), file.path);
    if (access_.options->csv_header.value_or(true)) ARROW_RETURN_NOT_OK(tokenizer.Next().status());
    FilePart part{.file = file, .first_row = 0, .rows = 0};
    int64_t row = 0;
    while (true) {
      if (row % kRowsBetweenLooks == 0 && stop_.stop_requested()) return arrow::Status::Cancelled("planning was cancelled");
      ARROW_ASSIGN_OR_RAISE(bool more, tokenizer.Next());
      if (!more) break;
      if (header.IsNoRecord(tokenizer)) continue;
      ARROW_RETURN_NOT_OK(header.CheckRecord(tokenizer, file.path));
      if (divisible && tokenizer.record_offset() - part.begin >= access_.options->split_bytes.value_or(kDefaultSplitBytes)) {
        part.end = tokenizer.record_offset();
        EndPart(part);
        part = {.file = file, .begin = part.end, .first_row = row, .first_line = tokenizer.line(), .rows = 0};
      }
      ++part.rows;
      if (known_ == nullptr) Guess(tokenizer, file, row);
      ++row;
    }
    if (divisible) part.end = tokenizer.end_offset();
    part.bytes = divisible ? part.end - part.begin : file.size;
    if (part.rows > 0) parts_.push_back(part);
    return arrow::Status::OK();
  }

  void EndPart(FilePart part) {
    part.bytes = part.end - part.begin;
    if (part.rows > 0) parts_.push_back(part);
  }

  void Guess(const CsvTokenizer& tokenizer, const FileIdentity& file, int64_t row) {
    for (size_t i = 0; i < guesses_.size(); ++i) {
      const CsvField& field = tokenizer.fields()[places_[i]];
      if (!IsCsvNull(*access_.options, field)) guesses_[i].Add(field.text, row, file.path, tokenizer.line());
    }
  }

  const FileAccess& access_;
  const std::shared_ptr<arrow::Schema> known_;
  const std::stop_token stop_;
  std::vector<std::string> names_;
  std::vector<TypeGuess> guesses_;
  std::vector<size_t> places_;  // of the columns in a record of the file at hand
  std::string first_path_;
  std::vector<FilePart> parts_;
};

/// Where the line after `offset` begins; the file's size when there is none.
arrow::Result<int64_t> NextLine(arrow::io::RandomAccessFile* file, int64_t offset, int64_t size) {
  constexpr int64_t kPiece = int64_t{64} << 10;
  while (offset < size) {
    ARROW_ASSIGN_OR_RAISE(auto piece, file->ReadAt(offset, std::min(kPiece, size - offset)));
    if (piece->size() == 0) break;
    const std::string_view text(*piece);
    const size_t feed = text.find('\n');
    if (feed != std::string_view::npos) return offset + static_cast<int64_t>(feed) + 1;
    offset += piece->size();
  }
  return size;
}

/// A line feed in an NDJSON file always ends a line: inside texts it is escaped.
arrow::Status DivideLines(const FileAccess& access, const FileIdentity& file, std::vector<FilePart>* parts) {
  if (!file.divisible()) {
    parts->push_back({.file = file, .first_row = 0, .bytes = file.size});
    return arrow::Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(auto opened, access.OpenFile(file));
  int64_t begin = 0;
  while (begin < file.size) {
    const int64_t target = begin + access.options->split_bytes.value_or(kDefaultSplitBytes);
    int64_t end = file.size;
    if (target < file.size) {
      auto next = NextLine(opened.get(), target - 1, file.size);
      ARROW_RETURN_NOT_OK(ExplainFileError(next.status(), file.path));
      end = *next;
    }
    parts->push_back({.file = file,
                      .begin = begin,
                      .end = end,
                      .first_row = begin == 0 ? 0 : -1,
                      .first_line = begin == 0 ? 1 : -1,
                      .bytes = end - begin});
    begin = end;
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Result<FoundFile> LookAtText(const FileAccess& access, const std::vector<FileIdentity>& files,
                                    const std::shared_ptr<arrow::Schema>& known, const std::stop_token& stop) {
  const bool csv = !files.empty() && files.front().kind.format == FileFormat::kCsv;
  if (csv) {
    CsvLook look(access, known, stop);
    for (const auto& file : files) ARROW_RETURN_NOT_OK(look.Add(file));
    return look.Finish();
  }
  FoundFile found{.schema = known};
  if (known == nullptr) {
    ARROW_ASSIGN_OR_RAISE(found.schema, InferNdjsonSchema(access, files, stop));
  }
  for (const auto& file : files) ARROW_RETURN_NOT_OK(DivideLines(access, file, &found.parts));
  return found;
}

}  // namespace headrace
