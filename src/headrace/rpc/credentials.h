// Which credentials a client uses. The value holds only where they are; a file or variable is read when a client is first opened.
//
// Plain value. No error text ever holds key material, a token, or what a file contains.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/rpc/endpoint.h"

namespace headrace::rpc {

enum class CredentialKind { kNone, kApplicationDefault, kAccessToken, kServiceAccountKey };

struct Credentials {
  CredentialKind kind = CredentialKind::kApplicationDefault;
  std::string source{};  // kAccessToken: name of the environment variable; kServiceAccountKey: path of the file

  bool operator==(const Credentials&) const = default;
};

/// The option `credentials`: "none", "adc", "token:ENV_NAME", or the path of a service-account key file. Empty: none for a plaintext
/// endpoint, else adc. Anything but "none" beside a plaintext endpoint is refused; kinds that are not built are refused by name. Reads
/// nothing.
arrow::Result<Credentials> ParseCredentials(std::string_view value, const Endpoint& endpoint);

/// The text of a service-account key file, checked to be one. Other kinds of file are refused by name.
arrow::Result<std::string> LoadServiceAccountKey(const Credentials& credentials, FileSystem* files);
/// The access token in the environment variable.
arrow::Result<std::string> LoadAccessToken(const Credentials& credentials);

}  // namespace headrace::rpc
