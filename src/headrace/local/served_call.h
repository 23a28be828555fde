// One call of a client while it is served: its faults, what it waits for, and its messages' way out.
//
// Belongs to the thread that serves the call, and must end before the call does.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include "headrace/base/clock.h"
#include "headrace/local/expired_sessions.h"
#include "headrace/local/faults.h"
#include "headrace/local/idle_watch.h"
#include "headrace/local/listener.h"
#include "headrace/local/throttle.h"

namespace headrace::local {

struct ServedCallParts {
  Clock* clock = nullptr;
  Listener* listener = nullptr;
  Throttle* throttle = nullptr;  // of all calls; null = no limit
  int64_t bytes_per_second = 0;  // of this call; 0 = no limit
  ExpiredSessions* expired = nullptr;
  std::stop_token stop{};
};

/// What is to happen to the next message.
struct MessageFaults {
  bool skip = false;
  bool duplicate = false;
  std::vector<RowDamage> damages{};
  std::optional<SchemaChange> schema{};
};

class ServedCall {
 public:
  ServedCall(ServedCallParts parts, grpc::ServerContext* context, CallFaults faults);

  /// The session that an ExpireFault is for. A call that made the session itself gives its answer all the same.
  void set_session(std::string name, bool made_here = false);

  /// The points of a call, in their order. Not OK: the call ends so.
  grpc::Status AfterMessages(int64_t messages) { return Apply(faults_.AfterMessages(messages)); }
  grpc::Status BeforeMessage(int64_t messages, RowRange rows, MessageFaults* faults);
  grpc::Status AfterLast() { return Apply(faults_.AfterLast()); }

  /// Not OK once the service shuts down or the session expired by a fault.
  grpc::Status MayGoOn() const;
  /// Waits for its turn and hands the message to the connection.
  grpc::Status Write(const grpc::ByteBuffer& message, int64_t bytes, grpc::ServerWriter<grpc::ByteBuffer>* writer);
  /// The share of its time that the call has waited for a throttle, in percent.
  int throttle_percent() const;

 private:
  grpc::Status Apply(const std::vector<CallFaults::Fired>& fired);
  grpc::Status Drop();
  void WatchIdle(const CallFaults::Fired& fired, const IdleFault& fault);
  grpc::Status SleepFor(Duration duration);
  /// The status of a call that ended under the service's hands.
  grpc::Status Gone() const;

  const ServedCallParts parts_;
  grpc::ServerContext* const context_;
  CallFaults faults_;
  const MonotonicTime began_;
  Duration waited_{0};
  std::string session_;
  bool made_session_ = false;
  std::unique_ptr<Throttle> own_throttle_;  // null = no limit
  std::shared_ptr<Throttle> throttle_;      // of a fault rule
  MessageFaults next_message_;
  grpc::Status idle_status_;
  std::unique_ptr<IdleWatch> idle_;
};

/// The status of a fault, with its details.
grpc::Status ToGrpc(const StatusFault& fault);

}  // namespace headrace::local
