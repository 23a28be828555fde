// A BigQuery table as a source: one read session per job, one split per stream of the session, rows as Arrow record batches.
//
// A Source is immutable and may be shared by threads. It contacts nothing and reads no file until an enumerator or a reader is made; those
// share its connections. Enumerators and readers keep what they need of it alive.
//
// Its readers cut their streams by SplitReadStream. A server that breaks the rules of split streams, or does not know the call, is not
// asked again by any reader of the source.
//
// Metrics: ReadMetrics. rowsRead and bytesRead count what was received, so what is received again after a resume counts again.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "headrace/bigquery/read/options.h"
#include "headrace/runtime/source.h"

namespace headrace::bigquery {

/// What a source counts.
std::span<const MetricInfo> ReadMetrics();

class Source final : public headrace::Source {
 public:
  /// Checks the options (CheckSourceOptions), the endpoint and the kind of credentials.
  static arrow::Result<std::shared_ptr<const Source>> Make(SourceOptions options);
  ~Source() override;

  Boundedness boundedness() const override { return Boundedness::kBounded; }
  bool supports_cuts() const override { return true; }
  Lineage lineage() const override;
  std::span<const MetricInfo> metrics() const override { return ReadMetrics(); }
  arrow::Result<std::unique_ptr<SplitEnumerator>> CreateEnumerator(const JobContext& context) const override;
  arrow::Result<std::unique_ptr<SplitEnumerator>> RestoreEnumerator(const JobContext& context, std::string_view state) const override;
  arrow::Result<std::unique_ptr<SplitReader>> OpenReader(const JobContext& context, const std::shared_ptr<arrow::Schema>& schema,
                                                         Split split) const override;

  const TableName& table() const;
  const SourceOptions& options() const;
  /// "host:port" that this source talks to, for the line printed at start.
  std::string endpoint() const;

 private:
  struct Config;
  explicit Source(std::shared_ptr<const Config> config);
  std::shared_ptr<const Config> config_;
};

}  // namespace headrace::bigquery
