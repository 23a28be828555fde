// Encoded responses of ReadRows, kept for calls that ask for the same rows in the same form: then a read costs the service no encoding, and
// what is measured is the client. Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <grpcpp/support/byte_buffer.h>

#include "headrace/local/read_view.h"
#include "headrace/local/row_range.h"

namespace headrace::local {

/// What decides every byte of a response that no fault touches.
struct ResponseKey {
  std::shared_ptr<const ReadView> view{};  // kept alive, so that its address stays its own
  RowRange range{};                        // of the stream, in the view
  int64_t offset = 0;                      // of the response's first row, in the stream
  bool has_schema = false;
  bool avro = false;
  TimestampPrecision precision{};
  int buffer_compression = 0;
  bool lz4 = false;

  bool operator<(const ResponseKey& other) const;
};

struct KeptResponse {
  grpc::ByteBuffer message{};  // a copy shares the bytes
  int64_t rows = 0;
  int64_t bytes = 0;
};

class ResponseCache {
 public:
  /// Keeps responses of so many bytes together, the first ones; 0 = none.
  explicit ResponseCache(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  std::optional<KeptResponse> Find(const ResponseKey& key) const;
  void Add(const ResponseKey& key, const KeptResponse& response);
  bool enabled() const { return limit_bytes_ > 0; }
  int64_t bytes() const;

 private:
  const int64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<ResponseKey, KeptResponse> responses_;
  int64_t bytes_ = 0;
};

}  // namespace headrace::local
