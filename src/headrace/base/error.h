// Errors of Headrace: arrow::Status whose detail says, for programs, what the text says for people.
//
// Every failure that crosses a public function is an arrow::Status; MakeError attaches an ErrorInfo to it. Values are immutable and may be
// shared by threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <arrow/result.h>
#include <arrow/status.h>

namespace headrace {

/// The canonical codes; the numbers are gRPC's (google/rpc/code.proto).
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "UNAVAILABLE" for kUnavailable.
std::string_view CodeName(Code code);
/// The inverse of CodeName; nothing for an unknown name.
std::optional<Code> CodeFromName(std::string_view name);

/// What a program may want to know of an error. Fields that do not apply stay empty.
struct ErrorInfo {
  Code code = Code::kUnknown;
  std::string service{};   // "BigQuery Storage Read", "local files", ...
  std::string method{};    // "ReadRows", "CreateReadSession", ...
  std::string resource{};  // the table, stream, file or option that the error is about
  std::string reason{};    // upper-case word for programs: "SESSION_EXPIRED", "VIEW_NOT_READABLE", ...
  bool retryable = false;
  std::optional<int64_t> row{};
  std::string column{};
};

/// A status with `info` as its detail. The arrow::StatusCode follows from info.code (see error.cc).
arrow::Status MakeError(ErrorInfo info, std::string message);
/// Shorthands for the two commonest kinds: a wrong option or argument, and something that is refused because it is not supported.
arrow::Status InvalidOption(std::string option, std::string message);
arrow::Status Unsupported(std::string what, std::string message);

/// The detail of an error made by MakeError, or null. Valid as long as `status` lives.
const ErrorInfo* GetErrorInfo(const arrow::Status& status);
/// The canonical code of any status: the detail's, or the nearest to its arrow::StatusCode.
Code CodeOf(const arrow::Status& status);
/// The same error with "`context`: " before its text; OK stays OK.
arrow::Status WithContext(const arrow::Status& status, std::string_view context);

}  // namespace headrace
