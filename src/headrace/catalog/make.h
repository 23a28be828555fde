// From addresses and options as text to sources, sinks and jobs, and to the configuration that a checkpoint keeps and back.
//
// Free functions, any thread. Everything is checked here or in the options' own Make; nothing talks to a service.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/bigquery/read/options.h"
#include "headrace/catalog/address.h"
#include "headrace/catalog/option_table.h"
#include "headrace/files/file_sink.h"
#include "headrace/files/file_source.h"
#include "headrace/runtime/job.h"
#include "headrace/runtime/sink.h"
#include "headrace/runtime/source.h"

namespace headrace::catalog {

/// `credentials` says where they are. A key or token itself would end up in checkpoints, configurations and process lists; the error does
/// not repeat it.
arrow::Status RefuseSecrets(const OptionValues& values);

/// Every option exists, is taken by the verb, has a value of its kind, acts on something that is there, and holds no secret.
arrow::Status CheckOptions(OptionVerb verb, const std::optional<Address>& source, const std::optional<Address>& destination,
                           const OptionValues& values);

/// `schema` names a file: its content takes the name's place, so that a checkpoint keeps what was read. Text that is JSON already stays.
arrow::Status ReadNamedFiles(FileSystem* files, OptionValues* values);

/// What the options of each place make; options of other places are passed over (CheckOptions has refused those that act on nothing).
arrow::Result<bigquery::SourceOptions> MakeSourceOptions(const Address& source, const OptionValues& values);
arrow::Result<FileSourceOptions> MakeFileSourceOptions(const Address& source, const OptionValues& values);
arrow::Result<FileSinkOptions> MakeSinkOptions(const Address& destination, const OptionValues& values);
/// Also fills the job's name and its configuration.
arrow::Result<JobOptions> MakeJobOptions(const Address& source, const Address& destination, const OptionValues& values);

/// What `bench` does with a source.
struct MeasureOptions {
  int readers = 0;                            // ReadOptions
  int64_t memory_limit = int64_t{512} << 20;  // bytes
  bool ordered = false;
  std::chrono::milliseconds duration = std::chrono::seconds{30};  // zero = until the source ends
};
arrow::Result<MeasureOptions> MakeMeasureOptions(const OptionValues& values);

arrow::Result<std::shared_ptr<const Source>> MakeSource(const Address& source, const OptionValues& values);
arrow::Result<std::shared_ptr<const Sink>> MakeSink(const Address& destination, const OptionValues& values);

/// The same name for the same copy: from the addresses and every option that decides what is read or written.
std::string StableJobName(const Address& source, const Address& destination, const OptionValues& values);

/// What a job is made from, as a checkpoint keeps it: both addresses and the options that were set, without those that concern only one run
/// of the program (its output, the checkpoint directory itself). Paths are absolute. Holds no secret: credentials are named, never
/// contained.
struct Configuration {
  Address source{};
  Address destination{};
  OptionValues values{};
};
std::map<std::string, std::string> ToMap(const Configuration& configuration);
/// The error names what is missing or unknown.
arrow::Result<Configuration> FromMap(const std::map<std::string, std::string>& map);
/// The persisted options with those given to `resume` over them; refuses what cannot change.
arrow::Result<OptionValues> MergeForResume(const Configuration& persisted, const OptionValues& given);

}  // namespace headrace::catalog
