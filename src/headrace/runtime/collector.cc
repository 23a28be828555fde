#include "headrace/runtime/collector.h"

namespace headrace::internal {

uint64_t CollectorGate::Open() {
  owner_ = std::this_thread::get_id();
  turn_.store(++last_turn_);
  return last_turn_;
}

arrow::Status CollectorGate::Check(uint64_t turn) {
  if (turn_.load() == turn && owner_.load() == std::this_thread::get_id()) return arrow::Status::OK();
  misused_.store(true);
  return Misuse();
}

arrow::Status CollectorGate::Misuse() {
  return MakeError({.code = Code::kFailedPrecondition, .resource = "collector", .reason = "COLLECTOR_MISUSED"},
                   "a collector was used after its mapper had returned, or on another thread: a mapper emits all records of a row, if any, "
                   "before it returns");
}

arrow::Status NullRecord() {
  return MakeError({.code = Code::kInvalidArgument, .resource = "collector", .reason = "NULL_RECORD"},
                   "the mapper emitted a null record: to skip a row, emit nothing");
}

}  // namespace headrace::internal
