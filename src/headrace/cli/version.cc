#include "headrace/cli/version.h"

#include <arrow/config.h>
#include <fmt/format.h>
#include <grpcpp/version_info.h>

#include "headrace/base/fail_point.h"
#include "headrace/cli/text.h"

namespace headrace::cli {

std::string_view Version() { return HEADRACE_VERSION; }

std::string VersionText() {
  return Aligned({{"headrace", HEADRACE_VERSION},
                  {"Arrow", arrow::GetBuildInfo().version_string},
                  {"gRPC", GRPC_CPP_VERSION_STRING},
                  {"fail points", kFailPointsCompiled ? "compiled in (a build for tests)" : "no"}});
}

}  // namespace headrace::cli
