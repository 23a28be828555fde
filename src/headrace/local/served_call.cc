#include "headrace/local/served_call.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpc/grpc.h>

namespace headrace::local {
namespace {

// How soon a waiting call sees that its client is gone: gRPC's synchronous calls have no other notice.
constexpr auto kCancelNotice = std::chrono::milliseconds(50);
constexpr const char* kShuttingDown = "the local service is shutting down";

// The descriptor of a connection that was handed to gRPC as one; -1 when the peer is none.
int DescriptorOf(const std::string& peer) {
  constexpr std::string_view kPrefix = "fd:";
  if (!peer.starts_with(kPrefix)) return -1;
  int fd = -1;
  std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
  return fd;
}

}  // namespace

grpc::Status ToGrpc(const StatusFault& fault) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(fault.code));
  details.set_message(fault.message);
  if (fault.retry_delay_ms) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*fault.retry_delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(*fault.retry_delay_ms % 1000 * 1'000'000));
    details.add_details()->PackFrom(retry);
  }
  return {static_cast<grpc::StatusCode>(fault.code), fault.message, details.SerializeAsString()};
}

ServedCall::ServedCall(ServedCallParts parts, grpc::ServerContext* context, CallFaults faults)
    : parts_(std::move(parts)), context_(context), faults_(std::move(faults)), began_(parts_.clock->Monotonic()) {
  if (parts_.bytes_per_second > 0) own_throttle_ = std::make_unique<Throttle>(parts_.clock, parts_.bytes_per_second);
}

void ServedCall::set_session(std::string name, bool made_here) {
  session_ = std::move(name);
  made_session_ = made_here;
}

grpc::Status ServedCall::Gone() const {
  if (idle_ != nullptr && idle_->closed()) return idle_status_;
  // At shutdown it is gRPC that ends what still runs: that is no wish of the client, who may try again.
  if (parts_.stop.stop_requested()) return {grpc::StatusCode::UNAVAILABLE, kShuttingDown};
  return {grpc::StatusCode::CANCELLED, "the client is gone"};
}

grpc::Status ServedCall::MayGoOn() const {
  if (parts_.stop.stop_requested()) return {grpc::StatusCode::UNAVAILABLE, kShuttingDown};
  auto expired = parts_.expired->Find(session_);
  return expired ? ToGrpc(*expired) : grpc::Status::OK;
}

grpc::Status ServedCall::SleepFor(Duration duration) {
  MonotonicTime start = parts_.clock->Monotonic();
  grpc::Status status = grpc::Status::OK;
  while (status.ok()) {
    Duration left = start + duration - parts_.clock->Monotonic();
    if (left <= Duration::zero()) break;
    if (context_->IsCancelled()) status = Gone();
    if (!parts_.clock->SleepFor(std::min<Duration>(left, kCancelNotice), parts_.stop)) {
      status = grpc::Status(grpc::StatusCode::UNAVAILABLE, kShuttingDown);
    }
  }
  waited_ += parts_.clock->Monotonic() - start;
  return status;
}

int ServedCall::throttle_percent() const {
  if (parts_.throttle == nullptr && own_throttle_ == nullptr && throttle_ == nullptr) return 0;
  Duration elapsed = std::max<Duration>(parts_.clock->Monotonic() - began_, Duration(1));
  return static_cast<int>(std::min<int64_t>(100, waited_ * 100 / elapsed));
}

grpc::Status ServedCall::Drop() {
  // A cancelled call may have lost its connection already, and the descriptor's number may be another connection's by now.
  if (!context_->IsCancelled()) parts_.listener->Break(DescriptorOf(context_->peer()));
  return {grpc::StatusCode::UNAVAILABLE, "Scripted fault: connection dropped"};
}

void ServedCall::WatchIdle(const CallFaults::Fired& fired, const IdleFault& fault) {
  idle_.reset();  // of an earlier rule
  idle_status_ = ToGrpc(fault.status);
  // The handler waits in Write, so it cannot end the call; and a status from it would wait behind the message that the client does not
  // take. This one goes past it.
  idle_ = std::make_unique<IdleWatch>(parts_.clock, std::chrono::milliseconds(fault.milliseconds), [this, fired] {
    faults_.CountClosed(fired);  // before its client can see it
    grpc_call_cancel_with_status(context_->c_call(), static_cast<grpc_status_code>(idle_status_.error_code()),
                                 idle_status_.error_message().c_str(), nullptr);
  });
}

grpc::Status ServedCall::Apply(const std::vector<CallFaults::Fired>& fired) {
  for (const auto& fault : fired) {
    const FaultAction& action = fault.action;
    if (const auto* status = std::get_if<StatusFault>(&action)) return ToGrpc(*status);
    if (std::holds_alternative<DropFault>(action)) return Drop();
    if (const auto* expire = std::get_if<ExpireFault>(&action)) {
      if (!session_.empty()) parts_.expired->Expire(session_, expire->status);
      if (!made_session_) return ToGrpc(expire->status);
    }
    if (fault.throttle != nullptr) throttle_ = fault.throttle;
    if (const auto* idle = std::get_if<IdleFault>(&action)) WatchIdle(fault, *idle);
    if (const auto* delay = std::get_if<DelayFault>(&action)) {
      grpc::Status status = SleepFor(std::chrono::milliseconds(delay->milliseconds));
      if (!status.ok()) return status;
    }
    if (std::holds_alternative<DuplicateFault>(action)) next_message_.duplicate = true;
    if (std::holds_alternative<SkipFault>(action)) next_message_.skip = true;
    if (const auto* damage = std::get_if<DamageFault>(&action)) next_message_.damages.push_back(damage->damage);
    if (const auto* schema = std::get_if<SchemaFault>(&action)) next_message_.schema = schema->change;
  }
  return grpc::Status::OK;
}

grpc::Status ServedCall::BeforeMessage(int64_t messages, RowRange rows, MessageFaults* faults) {
  next_message_ = {};
  grpc::Status status = Apply(faults_.ForMessage(messages, rows));
  *faults = std::move(next_message_);
  return status;
}

grpc::Status ServedCall::Write(const grpc::ByteBuffer& message, int64_t bytes, grpc::ServerWriter<grpc::ByteBuffer>* writer) {
  for (Throttle* throttle : {parts_.throttle, own_throttle_.get(), throttle_.get()}) {
    if (throttle == nullptr) continue;
    grpc::Status waited = SleepFor(throttle->Reserve(bytes));
    if (!waited.ok()) return waited;
  }
  if (idle_ != nullptr) idle_->Writing();
  bool written = writer->Write(message);
  if (idle_ != nullptr) idle_->Written();
  if (!written || (idle_ != nullptr && idle_->closed())) return Gone();
  return grpc::Status::OK;
}

}  // namespace headrace::local
