#include "headrace/local/response_cache.h"

#include <functional>
#include <tuple>

namespace headrace::local {

bool ResponseKey::operator<(const ResponseKey& other) const {
  const auto parts = [](const ResponseKey& key) {
    return std::make_tuple(key.range.begin, key.range.end, key.offset, key.has_schema, key.avro, key.precision, key.buffer_compression,
                           key.lz4);
  };
  if (view != other.view) return std::less<const ReadView*>()(view.get(), other.view.get());
  return parts(*this) < parts(other);
}

std::optional<KeptResponse> ResponseCache::Find(const ResponseKey& key) const {
  if (!enabled()) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = responses_.find(key);
  if (found == responses_.end()) return std::nullopt;
  return found->second;
}

void ResponseCache::Add(const ResponseKey& key, const KeptResponse& response) {
  std::lock_guard lock(mutex_);
  if (response.bytes > limit_bytes_ - bytes_) return;
  if (responses_.emplace(key, response).second) bytes_ += response.bytes;
}

int64_t ResponseCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace headrace::local
