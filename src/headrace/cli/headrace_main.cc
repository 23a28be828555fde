// The program `headrace`. What belongs to a whole process, not to a library, is set here: signals, standard streams, allocator.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "headrace/bigquery/process.h"
#include "headrace/cli/signals.h"
#include "headrace/cli/verbs.h"

namespace {

/// A stream that the caller has closed would be the number of the next file that is opened, and messages would be written into it: into a
/// result or a checkpoint. The stand-ins can be opened but not used, so that a report that nobody can get still is an error.
void ReserveStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is taken, which is `stream`.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  headrace::bigquery::TuneProcess();
  ReserveStandardStreams();
  // A reader that goes away makes a write fail, which is told by the exit code; it does not kill a copy half way.
  std::signal(SIGPIPE, SIG_IGN);
  // Neither does a limit of the shell on the size of files (ulimit -f): it is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  headrace::cli::SignalWatcher signals;
  return headrace::cli::RunProgram(std::vector<std::string>(argv + 1, argv + argc), signals);
}
