// The program `headrace`. What belongs to a whole process, not to a library, is set here: signals, allocator, gRPC's mutexes.
#include <absl/synchronization/mutex.h>
#include <malloc.h>

#include <string>
#include <vector>

#include "headrace/cli/signals.h"
#include "headrace/cli/verbs.h"

int main(int argc, char** argv) {
  // Messages and batches of megabytes come and go all the time; by default malloc maps and unmaps each, and every mapping costs page faults
  // (measured: about 18 ms per 4 MiB message). Kept in the heap they are reused. 32 MiB is the most that glibc takes as M_MMAP_THRESHOLD
  // (DEFAULT_MMAP_THRESHOLD_MAX); 256 MiB is half the default memory limit of a job.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // Debian builds abseil with its search for lock cycles on, which costs time at each lock of gRPC.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  headrace::cli::SignalWatcher signals;
  return headrace::cli::RunProgram(std::vector<std::string>(argv + 1, argv + argc), signals);
}
