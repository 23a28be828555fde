#include "headrace/files/internal/file_enumerator.h"

#include <algorithm>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/files/internal/file_list.h"
#include "headrace/files/internal/row_stream.h"
#include "headrace/files/internal/schema_union.h"
#include "headrace/types/schema.h"
#include "headrace/types/schema_json.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Result<std::shared_ptr<arrow::Schema>> SchemaOfBytes(const std::string& bytes) {
  arrow::io::BufferReader reader(arrow::Buffer::FromString(bytes));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&reader, &memo);
  if (schema.ok()) return schema;
  return MakeError({.code = Code::kDataLoss, .service = "local files", .reason = "CORRUPT_STATE"},
                   fmt::format("the schema in the persisted plan is damaged: {}", schema.status().message()));
}

arrow::Result<std::shared_ptr<arrow::Schema>> Selected(const std::shared_ptr<arrow::Schema>& schema, const std::vector<std::string>& names,
                                                       const std::string& path) {
  if (names.empty()) return schema;
  arrow::FieldVector fields;
  for (const auto& name : names) {
    for (const auto& field : schema->fields()) {
      if (SameColumnName(field->name(), name)) fields.push_back(field);
    }
    if (!fields.empty() && SameColumnName(fields.back()->name(), name)) continue;
    std::vector<std::string> known;
    for (const auto& field : schema->fields()) known.push_back(field->name());
    return MakeError({.code = Code::kInvalidArgument,
                      .service = "local files",
                      .resource = "selected_fields",
                      .reason = "INVALID_OPTION",
                      .column = name},
                     fmt::format("selected_fields names {}, and {} has no top-level column of that name; it has {}", name, path,
                                 fmt::join(known, ", ")));
  }
  return arrow::schema(std::move(fields));
}

/// Names of options with what they say; where it is their default, nothing.
SourceDescription Describe(const FileSourceOptions& options) {
  SourceDescription reads{{"path", fmt::format("{}", fmt::join(options.paths, ", "))}};
  const auto add = [&reads](const char* name, bool said, std::string value) {
    if (said) reads.emplace(name, std::move(value));
  };
  add("from_format", !options.from_format.empty(), options.from_format);
  add("selected_fields", !options.selected_fields.empty(), fmt::format("{}", fmt::join(options.selected_fields, ",")));
  add("schema", !options.schema.empty(), options.schema);
  add("csv_header", !options.csv_header.value_or(true), "false");
  const std::vector<std::string> empty_field{""};
  const auto nulls = options.csv_null_values.value_or(empty_field);
  add("csv_null_values", nulls != empty_field, fmt::format("{}", fmt::join(nulls, ",")));
  add("strict", options.strict.value_or(false), "true");
  add("rounding", !options.rounding.empty() && options.rounding != "error", options.rounding);
  add("epoch_unit", !options.epoch_unit.empty() && options.epoch_unit != "none", options.epoch_unit);
  add("ignore_unknown_values", options.ignore_unknown_values.value_or(false), "true");
  return reads;
}

/// Options that act on some files of a format only.
arrow::Status CheckOptionsOfFiles(const FileSourceOptions& options, const FileList& list) {
  const auto divisible = [](const FileIdentity& file) { return file.divisible(); };
  if (options.split_bytes && !list.files.empty() && std::ranges::none_of(list.files, divisible)) {
    const std::string& path = list.files.front().path;
    return InvalidOption("split_bytes", fmt::format("split_bytes does nothing here: {}, which is read as a whole",
                                                    path == "-" ? "the source is standard input" : path + " is a compressed file"));
  }
  if (list.manifest && !options.from_format.empty() && options.from_format != list.manifest->format) {
    return InvalidOption("from_format", fmt::format("from_format is {}, and the files of {} are {}, as its manifest says: leave it out",
                                                    options.from_format, options.paths.front(), list.manifest->format));
  }
  // Types that are found from the values are INT64, FLOAT64, BOOL, texts and times as they are written (type_guess.h), and each key is a
  // column: there is nothing to round, to take for a time, or to pass over.
  if (list.manifest || !options.schema.empty()) return arrow::Status::OK();
  const std::pair<const char*, bool> of_a_schema[] = {{"rounding", !options.rounding.empty()},
                                                      {"epoch_unit", !options.epoch_unit.empty()},
                                                      {"ignore_unknown_values", options.ignore_unknown_values.has_value()}};
  for (const auto& [name, given] : of_a_schema) {
    if (given) {
      return InvalidOption(name, fmt::format("{} does nothing here: the columns and their types are found from the values; give schema as "
                                             "well",
                                             name));
    }
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Status CheckOptionsOfFormat(const FileSourceOptions& options, FileFormat format) {
  const bool csv = format == FileFormat::kCsv;
  const bool text = csv || format == FileFormat::kNdjson;
  const struct {
    const char* name;
    bool given;
    bool applies;
  } only[] = {{"schema", !options.schema.empty(), text},
              {"csv_header", options.csv_header.has_value(), csv},
              {"csv_null_values", options.csv_null_values.has_value(), csv},
              {"strict", options.strict.has_value(), text},
              {"rounding", !options.rounding.empty(), text},
              {"epoch_unit", !options.epoch_unit.empty(), text},
              {"ignore_unknown_values", options.ignore_unknown_values.has_value(), format == FileFormat::kNdjson},
              {"split_bytes", options.split_bytes.has_value(), format != FileFormat::kArrowStream}};
  for (const auto& option : only) {
    if (!option.given || option.applies) continue;
    return InvalidOption(option.name, fmt::format("{} does nothing here: the format is {}", option.name, FileFormatName(format)));
  }
  return arrow::Status::OK();
}

arrow::Result<std::unique_ptr<SplitEnumerator>> FileEnumerator::Make(FileAccess access, const JobContext& context,
                                                                     std::optional<std::string_view> state) {
  std::unique_ptr<FileEnumerator> enumerator(new FileEnumerator(std::move(access), context));
  if (state.has_value()) {
    ARROW_ASSIGN_OR_RAISE(enumerator->state_, DecodeFilePlan(*state));
    if (enumerator->state_.planned) {
      ARROW_RETURN_NOT_OK(CheckSameSource(enumerator->state_.reads, Describe(*enumerator->access_.options)));
      ARROW_ASSIGN_OR_RAISE(enumerator->schema_, SchemaOfBytes(enumerator->state_.schema));
    }
  }
  return enumerator;
}

arrow::Status FileEnumerator::Start() {
  if (state_.planned) return arrow::Status::OK();  // the splits say which files; their readers see whether these are still the same
  ARROW_ASSIGN_OR_RAISE(auto list, ListFiles(access_));
  if (!list.not_read.empty()) {
    context_.logger->Log(LogLevel::kWarning, fmt::format("not read, being no files of the format: {}", fmt::join(list.not_read, ", ")));
  }
  const auto format =
      list.files.empty() ? FileFormatFromName(list.manifest->format).value_or(FileFormat::kParquet) : list.files.front().kind.format;
  ARROW_RETURN_NOT_OK(CheckOptionsOfFormat(*access_.options, format));
  ARROW_RETURN_NOT_OK(CheckOptionsOfFiles(*access_.options, list));
  ARROW_ASSIGN_OR_RAISE(auto found, Look(list, format));
  auto schema = found.schema;
  if (schema == nullptr) {
    ARROW_ASSIGN_OR_RAISE(schema, CanonicalFileSchema(list.manifest->schema, access_.options->paths.front()));
  }
  state_.files = static_cast<int64_t>(list.files.size());
  for (const auto& file : list.files) state_.bytes += file.size;
  return Plan(std::move(schema), found.parts);
}

arrow::Result<FoundFile> FileEnumerator::Look(const FileList& list, FileFormat format) const {
  if (format == FileFormat::kCsv || format == FileFormat::kNdjson) {
    ARROW_ASSIGN_OR_RAISE(auto known, KnownSchema(list));
    return LookAtText(access_, list.files, known, stop_.get_token());
  }
  SchemaUnion columns;
  FoundFile all;
  for (const auto& file : list.files) {
    if (stop_.stop_requested()) return arrow::Status::Cancelled("planning was cancelled");
    ARROW_ASSIGN_OR_RAISE(auto found, LookAtFile(access_, file));
    ARROW_RETURN_NOT_OK(columns.Add(found.schema, file.path));
    all.parts.insert(all.parts.end(), found.parts.begin(), found.parts.end());
  }
  all.schema = columns.schema();
  return all;
}

arrow::Result<std::shared_ptr<arrow::Schema>> FileEnumerator::KnownSchema(const FileList& list) const {
  if (!access_.options->schema.empty()) {
    ARROW_ASSIGN_OR_RAISE(auto table, SchemaFromJson(access_.options->schema));
    return ToArrowSchema(table);
  }
  if (!list.manifest) return nullptr;
  return CanonicalFileSchema(list.manifest->schema, access_.options->paths.front());
}

arrow::Status FileEnumerator::Plan(std::shared_ptr<arrow::Schema> schema, const std::vector<FilePart>& parts) {
  ARROW_ASSIGN_OR_RAISE(schema_, Selected(schema, access_.options->selected_fields, access_.options->paths.front()));
  ARROW_ASSIGN_OR_RAISE(auto bytes, arrow::ipc::SerializeSchema(*schema_));
  state_.schema = bytes->ToString();
  state_.rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& part = parts[i];
    state_.rows = part.rows < 0 || state_.rows < 0 ? -1 : state_.rows + part.rows;
    state_.queue.push_back(
        {.id = fmt::format("{:06}", i), .descriptor = EncodeFilePart(part), .estimated_bytes = static_cast<double>(part.bytes)});
  }
  state_.reads = Describe(*access_.options);
  state_.planned = true;
  return arrow::Status::OK();
}

arrow::Result<NextSplit> FileEnumerator::Next() {
  if (!state_.planned) return NextSplit{.kind = NextSplit::Kind::kNoneNow};
  if (state_.queue.empty()) return NextSplit{.kind = NextSplit::Kind::kNoneEver};
  NextSplit next{.kind = NextSplit::Kind::kSplit, .split = std::move(state_.queue.front())};
  state_.queue.pop_front();
  return next;
}

void FileEnumerator::AddSplitsBack(std::vector<Split> splits) {
  for (Split& split : splits) state_.queue.push_back(std::move(split));
}

std::map<std::string, std::string> FileEnumerator::facts() const {
  if (!state_.planned) return {};
  return {{"input", fmt::format("{}", fmt::join(access_.options->paths, ", "))}, {"input_files", fmt::format("{}", state_.files)}};
}

}  // namespace headrace
