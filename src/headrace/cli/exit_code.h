// The exit codes of every verb; docs/options.md explains them.
#pragma once

#include <string_view>

namespace headrace::cli {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitRejects = 3,    // done, but the sink rejected rows
  kExitResumable = 4,  // stopped at a checkpoint
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
/// As help and the manual page say it.
constexpr ExitCodeRow kExitCodes[] = {{kExitDone, "all rows done"},
                                      {kExitFailed, "failed"},
                                      {kExitUsage, "usage"},
                                      {kExitRejects, "done with rejected rows"},
                                      {kExitResumable, "stopped and resumable"}};

}  // namespace headrace::cli
