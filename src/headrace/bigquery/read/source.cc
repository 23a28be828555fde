#include "headrace/bigquery/read/source.h"

#include <mutex>
#include <utility>

#include "headrace/bigquery/read/internal/enumerator.h"
#include "headrace/bigquery/read/internal/reader.h"
#include "headrace/rpc/channel.h"
#include "headrace/runtime/job_metrics.h"

namespace headrace::bigquery {
namespace {

using enum MetricKind;

constexpr MetricInfo kMetrics[] = {
    kRowsRead,
    kBytesRead,
    {"responses", kCounter, "messages", "", "", "Responses of ReadRows."},
    {"readRetries", kCounter, "attempts", "readRetries", "code", "ReadRows calls that were opened again after a fault, by its code."},
    {"readSessionsCreated", kCounter, "sessions", "readSessionsCreated", "",
     "Read sessions created: 1 for a new job, 0 for a resumed one; anything else is a defect."},
    {"cutsRefused", kCounter, "cuts", "", "",
     "Streams that the service had split, and that were read on whole because the near part did not prove itself."},
};

}  // namespace

std::span<const MetricInfo> ReadMetrics() { return kMetrics; }

struct Source::Config : std::enable_shared_from_this<Source::Config> {
  SourceOptions options;
  TableName table;
  rpc::ChannelOptions channels;

  // Opened by the first enumerator or reader, with its context's files and clock; shared by all that have the same.
  mutable std::mutex mutex;
  mutable FileSystem* pool_files = nullptr;
  mutable Clock* pool_clock = nullptr;
  mutable std::shared_ptr<rpc::ChannelPool> pool;
  const std::shared_ptr<SharedByReaders> shared = std::make_shared<SharedByReaders>();

  arrow::Result<std::shared_ptr<rpc::ChannelPool>> Pool(const JobContext& context) const {
    std::lock_guard<std::mutex> guard(mutex);
    // A later job may have others, and those of an earlier one need not outlive it.
    if (pool == nullptr || pool_files != context.files || pool_clock != context.clock) {
      ARROW_ASSIGN_OR_RAISE(pool, rpc::ChannelPool::Make(channels, context.files, context.clock));
      pool_files = context.files;
      pool_clock = context.clock;
    }
    return pool;
  }

  std::shared_ptr<const SourceOptions> SharedOptions() const { return {shared_from_this(), &options}; }

  arrow::Result<std::unique_ptr<SplitEnumerator>> Enumerator(const JobContext& context, std::optional<std::string_view> state) const {
    auto open = [config = shared_from_this(), context] { return config->Pool(context); };
    ARROW_ASSIGN_OR_RAISE(auto enumerator, StreamEnumerator::Make(std::move(open), SharedOptions(), table, context, state));
    return std::unique_ptr<SplitEnumerator>(std::move(enumerator));
  }
};

Source::Source(std::shared_ptr<const Config> config) : config_(std::move(config)) {}

Source::~Source() = default;

arrow::Result<std::shared_ptr<const Source>> Source::Make(SourceOptions options) {
  ARROW_RETURN_NOT_OK(CheckSourceOptions(options));
  auto config = std::make_shared<Config>();
  ARROW_ASSIGN_OR_RAISE(config->table, ParseTableName(options.table, options.billing_project));
  ARROW_ASSIGN_OR_RAISE(config->channels.endpoint, rpc::ResolveStorageEndpoint(options.bigquery_storage_endpoint));
  ARROW_ASSIGN_OR_RAISE(config->channels.credentials, rpc::ParseCredentials(options.credentials, config->channels.endpoint));
  config->channels.quota_project = options.quota_project;
  config->channels.ca_bundle = options.ca_bundle;
  config->channels.channels = options.channels;
  config->channels.connect_limit = options.connect_limit;
  config->options = std::move(options);
  return std::shared_ptr<const Source>(new Source(std::move(config)));
}

Lineage Source::lineage() const {
  const TableName& table = config_->table;
  return {
      .datasets =
          {{.namespace_name = "bigquery",
            .name = table.ToString(),
            .facets = {{"gcp",
                        {{"type", "bigquery-table"}, {"project", table.project}, {"dataset", table.dataset}, {"table", table.table}}}}}},
      .boundedness = Boundedness::kBounded};
}

arrow::Result<std::unique_ptr<SplitEnumerator>> Source::CreateEnumerator(const JobContext& context) const {
  return config_->Enumerator(context, std::nullopt);
}

arrow::Result<std::unique_ptr<SplitEnumerator>> Source::RestoreEnumerator(const JobContext& context, std::string_view state) const {
  return config_->Enumerator(context, state);
}

arrow::Result<std::unique_ptr<SplitReader>> Source::OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                               Split split) const {
  ARROW_ASSIGN_OR_RAISE(auto pool, config_->Pool(context));
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        StreamReader::Open(std::move(pool), config_->SharedOptions(), context, schema, split, config_->shared));
  return std::unique_ptr<SplitReader>(std::move(reader));
}

const TableName& Source::table() const { return config_->table; }
const SourceOptions& Source::options() const { return config_->options; }
std::string Source::endpoint() const { return config_->channels.endpoint.target(); }

}  // namespace headrace::bigquery
