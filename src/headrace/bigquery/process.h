// Settings of a whole process, which a library must not change by itself.
#pragma once

namespace headrace::bigquery {

/// For a program whose main work is to move rows: the program `headrace` calls it. Call it first in main, before other threads run.
///
/// * glibc's malloc keeps what is freed, up to 256 MiB (half of a job's default memory limit), instead of giving it back and having every
///   page faulted in again for the next message. The memory that a process seems to use no longer falls at once when a job ends. All
///   threads share one heap, and it is asked to be of huge pages: measured, a twentieth of the page faults and a quarter less memory.
/// * gRPC's own lines on standard error are off, unless GRPC_VERBOSITY or GRPC_TRACE says otherwise: what they tell of comes back as an
///   error, in words for a user.
/// * abseil's search for lock cycles is off; Debian builds it with the search on, which costs time at each lock of gRPC.
void TuneProcess();

}  // namespace headrace::bigquery
