// The local service: the BigQuery Storage Read API on loopback, in this process, with no account.
//
// A Service owns its tables, its gRPC server, its admin HTTP server and all their threads. Start and Shutdown belong to one owner; Wait and
// the accessors may be called from any thread. It keeps no table of read sessions: a session's name carries what is needed, so that
// sessions survive a restart with the same tables. The library prints nothing: what a person should see is in BoundAddresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <arrow/table.h>

#include "headrace/base/clock.h"
#include "headrace/base/file_system.h"
#include "headrace/local/ignored_offsets.h"

namespace headrace::local {

/// A table to load at Start: "project.dataset.table" and a file of any format that files/read_table.h reads.
struct TableFile {
  std::string name{};
  std::string path{};
  /// A file with the table's schema as BigQuery's JSON, for CSV and NDJSON; empty = the types are found from the values.
  std::string schema{};
};

/// A table that the program already holds.
struct TableData {
  std::string name{};
  std::shared_ptr<arrow::Table> rows{};
};

struct ServiceOptions {
  std::vector<TableFile> load{};
  /// Fields of a loaded CSV file that are null.
  std::vector<std::string> csv_null_values{""};
  std::vector<TableData> tables{};
  /// Names that answer as a view does: it exists, and the Storage Read API refuses it (fact R14).
  std::vector<std::string> views{};
  /// A numeric address. Anything but loopback lets every machine that reaches it read the tables.
  std::string bind_address = "127.0.0.1";
  int grpc_port = 0;  // 0 = any free port
  /// The HTTP port: BigQuery's REST API, and health, counters, faults; always on loopback. 0 = any free port.
  int port = 0;
  /// A response ends when its rows reach about this many bytes, 1 byte to 64 MiB (a response of the real service may reach 128 MB).
  int64_t message_bytes = 1 << 20;
  /// A response never has more rows than this.
  int64_t message_rows = 65536;
  /// All ReadRows responses together are held to this rate; 0 = no limit.
  int64_t throttle_bytes_per_second = 0;
  /// The responses of each ReadRows call are held to this rate, besides; 0 = no limit. So much does one stream of the real service give.
  int64_t stream_throttle_bytes_per_second = 0;
  /// Streams of a session over a table without rows: 0 or 1. The real service may give either.
  int empty_table_streams = 0;
  /// A session has as many streams as its max_stream_count says, one a row at most. Otherwise as the real service: one for each 250 MB,
  /// so that a small table has one whatever is asked for.
  bool streams_as_asked = false;
  /// For tests of clients: a server that breaks the rule of ReadRowsRequest.offset.
  IgnoredOffsets ignore_offsets = IgnoredOffsets::kNone;
  /// Chooses the rows of sample_percentage.
  uint64_t seed = 0;
  /// A JSON file of fault rules, see docs/local-service.md; more can be posted to /headrace/faults.
  std::string fault_script{};
  /// Filtered tables kept for sessions with a row restriction or a sample.
  int64_t cache_bytes = int64_t{512} << 20;
  /// Encoded responses kept in memory, the first ones up to this size: what is read again in the same form is not encoded again. 0 = none.
  int64_t response_cache_bytes = 0;
  /// Calls served at once; further calls are answered RESOURCE_EXHAUSTED.
  int max_threads = 256;
  Clock* clock = nullptr;       // null = RealClock()
  FileSystem* files = nullptr;  // null = LocalFileSystem()
};

struct BoundAddresses {
  std::string grpc{};  // "127.0.0.1:41234"
  std::string http{};  // "127.0.0.1:41235"
};

class Service {
 public:
  explicit Service(ServiceOptions options);
  ~Service();  // as Shutdown
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Checks the options and loads the tables, which may take long; Start does it otherwise.
  arrow::Status Load();
  /// Listens. Call once; after an error the service serves nothing. Clients may be served before it returns.
  arrow::Result<BoundAddresses> Start();
  /// Waits until Shutdown was called or `stop` is requested.
  void Wait(const std::stop_token& stop);
  /// Cancels the calls in progress, closes all connections and joins all threads. Idempotent.
  void Shutdown();

  /// The text of GET /headrace/counters and of GET /headrace/faults.
  std::string CountersJson() const;
  std::string FaultsJson() const;
  /// As POST /headrace/faults: replaces all rules, or changes nothing and says what is wrong.
  arrow::Status SetFaults(const std::string& json);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::local
