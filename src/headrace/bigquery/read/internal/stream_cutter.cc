#include "headrace/bigquery/read/internal/stream_cutter.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <google/cloud/bigquery/storage/v1/storage.pb.h>

#include "headrace/base/fail_point.h"
#include "headrace/base/short_name.h"
#include "headrace/rpc/byte_stream.h"

namespace headrace::bigquery {
namespace {

namespace api = google::cloud::bigquery::storage::v1;

constexpr char kMethod[] = "/google.cloud.bigquery.storage.v1.BigQueryRead/SplitReadStream";
// All attempts of one request (docs/guarantees.md): longer than any reader waits for work without harm.
constexpr Duration kBudget = std::chrono::seconds{30};
// After a refusal: the service cuts at borders of its storage, so the same question soon after has the same answer.
constexpr Duration kFirstPause = std::chrono::seconds{1};
constexpr Duration kLongestPause = std::chrono::seconds{60};

}  // namespace

void CutPolicy::Forbid(Logger* logger, std::string_view reason) {
  if (!allowed_.exchange(false)) return;
  logger->Log(LogLevel::kWarning, fmt::format("work is not shared by cutting read streams any more: {}", reason));
}

StreamCutter::StreamCutter(std::shared_ptr<rpc::ChannelPool> pool, const JobContext& context, std::shared_ptr<CutPolicy> policy,
                           std::string stream)
    : pool_(std::move(pool)), context_(context), policy_(std::move(policy)), stream_(std::move(stream)) {}

StreamCutter::~StreamCutter() { Cancel(); }  // the thread is joined by its own destructor, before the members above it go

bool StreamCutter::can_ask() const {
  if (!policy_->allowed() || stop_.stop_requested()) return false;
  std::lock_guard<std::mutex> guard(mutex_);
  return state_ == State::kIdle && context_.clock->Monotonic() >= not_before_;
}

void StreamCutter::Ask(double fraction) {
  if (!(fraction > 0 && fraction < 1) || !can_ask()) return;
  std::lock_guard<std::mutex> guard(mutex_);
  if (state_ != State::kIdle) return;
  if (thread_.joinable()) thread_.join();  // it has told its answer: what is left of it takes no time
  try {
    thread_ = std::jthread([this, stream = stream_, fraction] { Run(stream, fraction); });
    state_ = State::kAsking;
  } catch (const std::system_error&) {
    RefuseLocked();  // no thread to be had: nobody waits for a cut
  }
}

std::optional<CutStreams> StreamCutter::Take() {
  std::lock_guard<std::mutex> guard(mutex_);
  return std::exchange(answer_, std::nullopt);
}

void StreamCutter::Accept(std::string stream) {
  std::lock_guard<std::mutex> guard(mutex_);
  stream_ = std::move(stream);
  refusals_ = 0;
  state_ = State::kIdle;
}

void StreamCutter::Refuse() {
  std::lock_guard<std::mutex> guard(mutex_);
  RefuseLocked();
}

void StreamCutter::RefuseLocked() {
  Duration pause = kFirstPause;
  for (int i = 0; i < refusals_ && pause < kLongestPause; ++i) pause *= 2;
  ++refusals_;
  not_before_ = context_.clock->Monotonic() + std::min(pause, kLongestPause);
  state_ = State::kIdle;
}

void StreamCutter::Finish(State state) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (state == State::kIdle) {
    RefuseLocked();
  } else {
    state_ = state;
  }
}

void StreamCutter::Run(const std::string& stream, double fraction) {
  FailPoint("cut.asked");
  auto answer = Call(stream, fraction);
  if (!answer.has_value()) return;
  FailPoint("cut.answered");
  const std::string text = fmt::format("the service split {} at fraction {:.4g} into {} and {}", ShortName(stream), fraction,
                                       ShortName(answer->primary), ShortName(answer->remainder));
  {
    std::lock_guard<std::mutex> guard(mutex_);
    answer_ = std::move(answer);
    state_ = State::kAnswered;
  }
  context_.logger->Log(LogLevel::kInfo, text);
}

std::optional<CutStreams> StreamCutter::Call(const std::string& stream, double fraction) {
  api::SplitReadStreamRequest request;
  request.set_name(stream);
  request.set_fraction(fraction);
  const std::string bytes = request.SerializeAsString();
  const MonotonicTime until = context_.clock->Monotonic() + kBudget;
  rpc::RetryState retry(0, context_.random);
  while (true) {
    const Duration left = std::max<Duration>(until - context_.clock->Monotonic(), std::chrono::milliseconds{1});
    auto answer = rpc::UnaryCall(
        pool_->Acquire(), {.method = kMethod, .request = bytes, .routing = rpc::RoutingParameter("name", stream), .attempt_limit = left},
        stop_.get_token());
    if (stop_.stop_requested()) return std::nullopt;
    if (const auto* text = std::get_if<std::string>(&answer)) return Check(stream, fraction, *text);
    const auto& failure = std::get<rpc::RpcFailure>(answer);
    const auto wait = retry.Next(rpc::ClassifyCreateReadSession(failure), failure);
    if (!wait.has_value() || context_.clock->Monotonic() + *wait >= until) {
      NoteFailure(stream, failure);
      return std::nullopt;
    }
    if (!context_.clock->SleepFor(*wait, stop_.get_token())) return std::nullopt;
  }
}

std::optional<CutStreams> StreamCutter::Check(const std::string& stream, double fraction, const std::string& bytes) {
  api::SplitReadStreamResponse answer;
  if (!answer.ParseFromString(bytes)) {
    Forbid(fmt::format("the answer to SplitReadStream of {} cannot be parsed", ShortName(stream)));
    Finish(State::kNever);
    return std::nullopt;
  }
  const std::string& primary = answer.primary_stream().name();
  const std::string& remainder = answer.remainder_stream().name();
  if (primary.empty() || remainder.empty()) {  // storage.proto: the stream can no longer be split
    Finish(State::kNever);
    return std::nullopt;
  }
  if (primary == remainder || primary == stream || remainder == stream) {
    Forbid(fmt::format("the server split {} into streams that are not two new ones", ShortName(stream)));
    Finish(State::kNever);
    return std::nullopt;
  }
  return CutStreams{.primary = primary, .remainder = remainder, .fraction = fraction};
}

void StreamCutter::NoteFailure(const std::string& stream, const rpc::RpcFailure& failure) {
  context_.logger->Log(LogLevel::kInfo,
                       fmt::format("SplitReadStream of {} failed with {}: {}", ShortName(stream), CodeName(failure.code), failure.message));
  switch (failure.code) {
    case Code::kUnimplemented:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      // Each stream of the source would be answered so.
      policy_->Forbid(context_.logger, fmt::format("SplitReadStream failed with {}: {}", CodeName(failure.code), failure.message));
      return Finish(State::kNever);
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kFailedPrecondition:
      return Finish(State::kNever);
    default:
      return Finish(State::kIdle);
  }
}

}  // namespace headrace::bigquery
