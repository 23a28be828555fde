// The exit codes of every verb; docs/options.md lists them.
#pragma once

namespace headrace::cli {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitRejects = 3,    // done, but the sink rejected rows
  kExitResumable = 4,  // stopped at a checkpoint
};

}  // namespace headrace::cli
