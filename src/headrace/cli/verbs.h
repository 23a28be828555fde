// One function per verb; each answers the exit code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/cli/arguments.h"
#include "headrace/cli/console.h"
#include "headrace/cli/signals.h"

namespace headrace::cli {

/// What a verb works with.
struct Session {
  const Arguments& arguments;
  Console& console;
  SignalWatcher& signals;
};

int Copy(Session session);
int Resume(Session session);
int Plan(Session session);
int Schema(Session session);
int Bench(Session session);
int Serve(Session session);
int Completion(Session session);
int PrintManual(Session session);
/// Instead of the verb, when --print-config is given.
int PrintConfig(Session session);

/// The whole program behind main(), with `arguments` as given after the program's name.
int RunProgram(std::vector<std::string> arguments, SignalWatcher& signals);

/// Prints an error. The exit code is that of usage for options, addresses and what is not supported, whenever that was found (planning
/// shows the columns of a table, and those of the last of many files come late), else that of a failure.
int Fail(Console& console, const arrow::Status& status, std::string_view resume_command = {});

}  // namespace headrace::cli
