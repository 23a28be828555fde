// Where a service is: its own host over TLS, or a host and port given by the user (an emulator, a local service, a private endpoint).
//
// Plain values. ResolveEndpoint is the only place of the library that reads an endpoint from the environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::rpc {

struct Endpoint {
  std::string host{};
  uint16_t port = 443;
  bool plaintext = false;  // no TLS and no credentials: an emulator
  std::string given_by{};  // the option or environment variable that named it; empty = the service's own host

  /// "host:port" as gRPC takes it.
  std::string target() const;
  bool operator==(const Endpoint&) const = default;
};

/// The host and port of "host:port", split at the last colon. `option` and `value` are named in the error. Nothing is trimmed.
arrow::Result<Endpoint> ParseHostPort(std::string_view option, std::string_view value);

/// "host:port" and "http://host:port" mean plaintext without credentials; "https://host[:port]" means TLS with credentials.
arrow::Result<Endpoint> ParseEndpoint(std::string_view option, std::string_view value);

/// The Storage API's endpoint (read and write): `value` of the option bigquery_storage_endpoint, else the environment variable
/// BIGQUERY_STORAGE_EMULATOR_HOST, else bigquerystorage.googleapis.com.
arrow::Result<Endpoint> ResolveStorageEndpoint(std::string_view value);

}  // namespace headrace::rpc
