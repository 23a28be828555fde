#include "headrace/types/column_text.h"

#include <utility>

#include <fmt/format.h>

#include "headrace/types/internal/scalar_appender.h"
#include "headrace/types/internal/scalar_text.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

arrow::Status RefuseNested(const Field& field) {
  const bool repeated = field.mode == Mode::kRepeated;
  if (!repeated && field.kind != TypeKind::kStruct) return arrow::Status::OK();
  ErrorInfo info{.code = Code::kUnimplemented, .resource = "text", .reason = "UNSUPPORTED", .column = field.name};
  return MakeError(std::move(info), fmt::format("column {}: {} has no form as plain text", field.name, repeated ? "an ARRAY" : "a STRUCT"));
}

}  // namespace

ColumnText::ColumnText(std::string name, std::unique_ptr<internal::ScalarText> text) : name_(std::move(name)), text_(std::move(text)) {}
ColumnText::ColumnText(ColumnText&&) noexcept = default;
ColumnText& ColumnText::operator=(ColumnText&&) noexcept = default;
ColumnText::~ColumnText() = default;

arrow::Result<ColumnText> ColumnText::Make(const arrow::Field& canonical, TextForm form) {
  ARROW_ASSIGN_OR_RAISE(auto schema, FromArrowSchema(arrow::Schema({canonical.Copy()})));
  const Field& field = schema.fields[0];
  ARROW_RETURN_NOT_OK(RefuseNested(field));
  ARROW_RETURN_NOT_OK(internal::CheckCanonical(field, *canonical.type(), field.name));
  return ColumnText(field.name, std::make_unique<internal::ScalarText>(field, *canonical.type(), form));
}

arrow::Status ColumnText::Append(const arrow::Array& column, int64_t index, std::string* out, int64_t first_row) const {
  auto status = text_->Append(column, index, out);
  if (status.ok()) return status;
  return internal::AtPlace(status, name_, first_row + index);
}

ColumnParser::ColumnParser(Field field, int64_t first_row, std::unique_ptr<arrow::ArrayBuilder> builder,
                           std::unique_ptr<internal::ScalarAppender> appender)
    : field_(std::move(field)), first_row_(first_row), builder_(std::move(builder)), appender_(std::move(appender)) {}
ColumnParser::~ColumnParser() = default;

arrow::Result<std::unique_ptr<ColumnParser>> ColumnParser::Make(const Field& field, const ParseOptions& options, int64_t first_row,
                                                                arrow::MemoryPool* pool) {
  ARROW_RETURN_NOT_OK(RefuseNested(field));
  ARROW_ASSIGN_OR_RAISE(auto arrow_field, ToArrowField(field));
  ARROW_ASSIGN_OR_RAISE(auto builder, arrow::MakeBuilder(arrow_field->type(), pool));
  auto appender = std::make_unique<internal::ScalarAppender>(field, options, builder.get());
  return std::unique_ptr<ColumnParser>(new ColumnParser(field, first_row, std::move(builder), std::move(appender)));
}

int64_t ColumnParser::row_count() const { return builder_->length(); }

arrow::Status ColumnParser::AtRow(const arrow::Status& status) const {
  if (status.ok() || status.IsCapacityError() || status.IsOutOfMemory()) return status;
  return internal::AtPlace(status, field_.name, first_row_ + builder_->length());
}

arrow::Status ColumnParser::Append(std::string_view text) { return AtRow(appender_->Append(ValueSource::kText, text)); }

arrow::Status ColumnParser::AppendNull() {
  if (field_.mode == Mode::kRequired) return AtRow(arrow::Status::Invalid("null in a REQUIRED column"));
  return AtRow(appender_->AppendNull());
}

arrow::Result<std::shared_ptr<arrow::Array>> ColumnParser::Finish() {
  first_row_ += builder_->length();
  return builder_->Finish();
}

}  // namespace headrace
