#include "headrace/rpc/process.h"

#include <absl/synchronization/mutex.h>
#include <malloc.h>

namespace headrace::rpc {

void TuneProcess() {
#ifdef __GLIBC__
  // The most that glibc takes as M_MMAP_THRESHOLD (DEFAULT_MMAP_THRESHOLD_MAX).
  constexpr int kMapFrom = 32 << 20;
  // The heap of a thread other than the first is 64 MiB of addresses (HEAP_MAX_SIZE); with so much room to ask for it is not unmapped
  // whenever all of it is free.
  constexpr int kHeap = 64 << 20;
  constexpr int kTrimFrom = 256 << 20;
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TOP_PAD, kHeap);
  mallopt(M_TRIM_THRESHOLD, kTrimFrom);
#endif
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace headrace::rpc
