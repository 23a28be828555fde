#include <stop_token>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/base/file_system.h"
#include "headrace/catalog/make.h"
#include "headrace/cli/exit_code.h"
#include "headrace/cli/serve_options.h"
#include "headrace/cli/verbs.h"
#include "headrace/local/service.h"

namespace headrace::cli {
namespace {

arrow::Status RemoveReadyFile(const catalog::OptionValues& values) {
  auto file = values.find("ready_file");
  if (file == values.end()) return arrow::Status::OK();
  return WithContext(LocalFileSystem()->Remove(file->second), "--ready-file");
}

arrow::Status WriteReadyFile(const catalog::OptionValues& values, const local::BoundAddresses& addresses) {
  auto file = values.find("ready_file");
  if (file == values.end()) return arrow::Status::OK();
  nlohmann::ordered_json json = {{"grpc", addresses.grpc}, {"admin", addresses.http}};
  return WithContext(WriteFileAtomically(LocalFileSystem(), file->second, json.dump() + "\n", /*replace=*/true), "--ready-file");
}

}  // namespace

int Serve(Session session) {
  const catalog::OptionValues& values = session.arguments.options;
  auto status = catalog::CheckOptions(catalog::kServeVerb, std::nullopt, std::nullopt, values);
  auto options = status.ok() ? MakeServiceOptions(values) : arrow::Result<local::ServiceOptions>(status);
  if (!options.ok()) return Fail(session.console, options.status());

  // One that a killed run has left would tell that this one is ready, and where it is not.
  if (auto removed = RemoveReadyFile(values); !removed.ok()) return Fail(session.console, removed);
  std::stop_source stop;
  local::Service service(*options);
  if (auto loaded = service.Load(); !loaded.ok()) return Fail(session.console, loaded);
  // Clients are served from within Start on, and whoever sees that may ask for the end.
  SignalScope on_signal(session.signals, [&stop](int) { stop.request_stop(); });
  auto addresses = service.Start();
  if (!addresses.ok()) return Fail(session.console, addresses.status());
  for (const local::TableFile& table : options->load) session.console.Result(fmt::format("table {} from {}", table.name, table.path));
  session.console.Result(fmt::format("BigQuery Storage Read API at http://{}", addresses->grpc));
  session.console.Result(fmt::format("BigQuery REST API at http://{}", addresses->http));
  session.console.Result(fmt::format("admin at http://{}/headrace/ (health, counters, faults)", addresses->http));
  if (auto ready = WriteReadyFile(values, *addresses); !ready.ok()) return Fail(session.console, ready);
  service.Wait(stop.get_token());
  // First: whoever finds it may connect.
  if (auto removed = RemoveReadyFile(values); !removed.ok()) session.console.Log(LogLevel::kWarning, removed.message());
  service.Shutdown();
  return on_signal.EndsWith(kExitDone);
}

}  // namespace headrace::cli
