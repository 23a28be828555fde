#include "headrace/bigquery/process.h"

#include <absl/synchronization/mutex.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace headrace::bigquery {
namespace {

#ifdef __GLIBC__
// The most that glibc takes as M_MMAP_THRESHOLD (DEFAULT_MMAP_THRESHOLD_MAX).
constexpr int kMapFrom = 32 << 20;
// What is asked for more when the heap grows.
constexpr int kHeap = 64 << 20;
constexpr int kTrimFrom = 256 << 20;
constexpr uintptr_t kHugePage = 2 << 20;  // of x86-64, and of arm64 with pages of 4 KiB

/// Lets the heap grow to nearly what is kept of it, so that nothing of that is trimmed, and asks for huge pages there. Only addresses are
/// taken, no memory.
void UseHugePages() {
  std::array<void*, kTrimFrom / kMapFrom - 1> blocks{};
  for (void*& block : blocks) block = std::malloc(kMapFrom - 4096);
  const auto first = reinterpret_cast<uintptr_t>(blocks.front());
  const auto last = reinterpret_cast<uintptr_t>(blocks.back());
  for (void* block : blocks) std::free(block);
  auto* const heap_end = static_cast<char*>(sbrk(0));
  const auto end = reinterpret_cast<uintptr_t>(heap_end);
  // Where the heap cannot grow, for a limit or another mapping above it, glibc takes other addresses.
  if (first == 0 || last < first || last >= end) return;
  const uintptr_t from = (first + kHugePage - 1) / kHugePage * kHugePage;
  // Advice: a kernel that has none does as before.
  (void)madvise(heap_end - (end - from), end / kHugePage * kHugePage - from, MADV_HUGEPAGE);
}
#endif

}  // namespace

void TuneProcess() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TRIM_THRESHOLD, kTrimFrom);
  // Each thread's own heap would have its pages faulted in for itself, while what other threads have freed lies idle.
  mallopt(M_ARENA_MAX, 1);
  UseHugePages();
  mallopt(M_TOP_PAD, kHeap);
#endif
  // Read by gRPC when it starts (doc/environment_variables.md).
  if (std::getenv("GRPC_TRACE") == nullptr) setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace headrace::bigquery
