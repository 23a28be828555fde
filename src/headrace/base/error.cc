#include "headrace/base/error.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace headrace {
namespace {

constexpr const char* kDetailTypeId = "headrace::ErrorDetail";

class ErrorDetail final : public arrow::StatusDetail {
 public:
  explicit ErrorDetail(ErrorInfo info) : info_(std::move(info)) {}
  const char* type_id() const override { return kDetailTypeId; }
  std::string ToString() const override {
    std::string text(CodeName(info_.code));
    if (!info_.method.empty()) text += fmt::format(" from {}", info_.method);
    if (!info_.resource.empty()) text += fmt::format(" on {}", info_.resource);
    if (!info_.reason.empty()) text += fmt::format(" ({})", info_.reason);
    return text;
  }
  const ErrorInfo& info() const { return info_; }

 private:
  ErrorInfo info_;
};

constexpr std::array<std::string_view, 17> kNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

arrow::StatusCode ArrowCode(Code code) {
  switch (code) {
    case Code::kOk:
      return arrow::StatusCode::OK;
    case Code::kCancelled:
      return arrow::StatusCode::Cancelled;
    case Code::kInvalidArgument:
      return arrow::StatusCode::Invalid;
    case Code::kNotFound:
      return arrow::StatusCode::KeyError;
    case Code::kAlreadyExists:
      return arrow::StatusCode::AlreadyExists;
    case Code::kResourceExhausted:
      return arrow::StatusCode::CapacityError;
    case Code::kOutOfRange:
      return arrow::StatusCode::IndexError;
    case Code::kUnimplemented:
      return arrow::StatusCode::NotImplemented;
    case Code::kUnknown:
      return arrow::StatusCode::UnknownError;
    default:
      return arrow::StatusCode::IOError;
  }
}

}  // namespace

std::string_view CodeName(Code code) {
  auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

std::optional<Code> CodeFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Code>(i);
  }
  return std::nullopt;
}

arrow::Status MakeError(ErrorInfo info, std::string message) {
  if (info.code == Code::kOk) info.code = Code::kInternal;
  auto arrow_code = ArrowCode(info.code);
  return {arrow_code, std::move(message), std::make_shared<ErrorDetail>(std::move(info))};
}

arrow::Status InvalidOption(std::string option, std::string message) {
  return MakeError({.code = Code::kInvalidArgument, .resource = std::move(option), .reason = "INVALID_OPTION"}, std::move(message));
}

arrow::Status Unsupported(std::string what, std::string message) {
  return MakeError({.code = Code::kUnimplemented, .resource = std::move(what), .reason = "UNSUPPORTED"}, std::move(message));
}

const ErrorInfo* GetErrorInfo(const arrow::Status& status) {
  if (status.ok() || status.detail() == nullptr) return nullptr;
  if (std::string_view(status.detail()->type_id()) != kDetailTypeId) return nullptr;
  return &static_cast<const ErrorDetail&>(*status.detail()).info();
}

Code CodeOf(const arrow::Status& status) {
  if (const ErrorInfo* info = GetErrorInfo(status)) return info->code;
  switch (status.code()) {
    case arrow::StatusCode::OK:
      return Code::kOk;
    case arrow::StatusCode::Cancelled:
      return Code::kCancelled;
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::TypeError:
      return Code::kInvalidArgument;
    case arrow::StatusCode::KeyError:
      return Code::kNotFound;
    case arrow::StatusCode::AlreadyExists:
      return Code::kAlreadyExists;
    case arrow::StatusCode::OutOfMemory:
    case arrow::StatusCode::CapacityError:
      return Code::kResourceExhausted;
    case arrow::StatusCode::IndexError:
      return Code::kOutOfRange;
    case arrow::StatusCode::NotImplemented:
      return Code::kUnimplemented;
    default:
      return Code::kUnknown;
  }
}

arrow::Status WithContext(const arrow::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return status.WithMessage(fmt::format("{}: {}", context, status.message()));
}

}  // namespace headrace
