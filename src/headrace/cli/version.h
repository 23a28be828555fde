// Versions of this build.
#pragma once

#include <string>
#include <string_view>

namespace headrace::cli {

std::string_view Version();
/// Program, Arrow and gRPC, and whether fail points are compiled in; one line each.
std::string VersionText();

}  // namespace headrace::cli
