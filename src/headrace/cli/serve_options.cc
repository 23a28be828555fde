#include "headrace/cli/serve_options.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "headrace/base/file_system.h"
#include "headrace/catalog/option_value.h"
#include "headrace/files/read_table.h"

namespace headrace::cli {
namespace {

std::vector<std::string> Each(const std::string& joined) {
  std::vector<std::string> values;
  size_t start = 0;
  while (true) {
    size_t end = joined.find('\n', start);
    values.push_back(joined.substr(start, end - start));
    if (end == std::string::npos) return values;
    start = end + 1;
  }
}

arrow::Result<local::TableFile> ParseLoad(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return InvalidOption("load", fmt::format("--load is '{}': give project.dataset.table=FILE", text));
  }
  return local::TableFile{text.substr(0, equals), text.substr(equals + 1)};
}

arrow::Status SetPort(std::string_view name, std::string_view text, int* port) {
  ARROW_ASSIGN_OR_RAISE(int64_t value, catalog::ParseInteger(name, text));
  if (value < 0 || value > 65535)
    return InvalidOption(std::string(name), fmt::format("{} is {}: a port is 1 to 65535, or 0 for any free one", name, text));
  *port = static_cast<int>(value);
  return arrow::Status::OK();
}

arrow::Status SetOne(const std::string& name, const std::string& text, local::ServiceOptions* options) {
  if (name == "load") {
    for (const std::string& one : Each(text)) ARROW_RETURN_NOT_OK(ParseLoad(one).Value(&options->load.emplace_back()));
  } else if (name == "csv_null_values") {
    options->csv_null_values = catalog::ParseList(text);
  } else if (name == "view") {
    options->views = Each(text);
  } else if (name == "bind_address") {
    options->bind_address = text;
  } else if (name == "grpc_port") {
    return SetPort(name, text, &options->grpc_port);
  } else if (name == "port") {
    return SetPort(name, text, &options->port);
  } else if (name == "throttle") {
    return catalog::ParseBytes(name, text).Value(&options->throttle_bytes_per_second);
  } else if (name == "response_cache") {
    return catalog::ParseBytes(name, text).Value(&options->response_cache_bytes);
  } else if (name == "stream_throttle") {
    return catalog::ParseBytes(name, text).Value(&options->stream_throttle_bytes_per_second);
  } else if (name == "message_bytes") {
    return catalog::ParseBytes(name, text).Value(&options->message_bytes);
  } else if (name == "message_rows") {
    return catalog::ParseInteger(name, text).Value(&options->message_rows);
  } else if (name == "empty_table_streams") {
    ARROW_ASSIGN_OR_RAISE(int64_t streams, catalog::ParseInteger(name, text));
    if (streams != 0 && streams != 1) return InvalidOption(name, fmt::format("empty_table_streams is {}: give 0 or 1", streams));
    options->empty_table_streams = static_cast<int>(streams);
  } else if (name == "streams_as_asked") {
    options->streams_as_asked = text == "true";
  } else if (name == "ignore_offsets") {
    return local::ParseIgnoredOffsets(text).Value(&options->ignore_offsets);
  } else if (name == "seed") {
    ARROW_ASSIGN_OR_RAISE(int64_t seed, catalog::ParseInteger(name, text));
    options->seed = static_cast<uint64_t>(seed);
  } else if (name == "faults") {
    options->fault_script = text;
  }
  return arrow::Status::OK();
}

/// What is wrong with a file is the service's to say.
bool MayBeCsv(const local::TableFile& table) {
  const auto format = FormatOfFiles(LocalFileSystem(), table.path);
  return !format.ok() || *format == FileFormat::kCsv;
}

}  // namespace

arrow::Result<local::ServiceOptions> MakeServiceOptions(const catalog::OptionValues& values) {
  local::ServiceOptions options;
  for (const auto& [name, text] : values) ARROW_RETURN_NOT_OK(SetOne(name, text, &options));
  if (values.contains("csv_null_values") && std::ranges::none_of(options.load, MayBeCsv)) {
    return InvalidOption("csv_null_values", "--csv-null-values does nothing here: no CSV file is loaded (--load)");
  }
  auto schemas = values.find("load_schema");
  if (schemas == values.end()) return options;
  for (const std::string& one : Each(schemas->second)) {
    size_t equals = one.find('=');
    auto loaded = std::find_if(options.load.begin(), options.load.end(),
                               [&](const local::TableFile& file) { return file.name == one.substr(0, equals); });
    if (equals == std::string::npos || loaded == options.load.end()) {
      return InvalidOption("load_schema", fmt::format("--load-schema is '{}': give TABLE=FILE for a table that --load names", one));
    }
    loaded->schema = one.substr(equals + 1);
  }
  return options;
}

}  // namespace headrace::cli
