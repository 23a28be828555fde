// Which credentials a client uses. The value holds only where they are; a file or variable is read when a client is first opened.
//
// Plain value. No error text ever holds key material, a token, or what a file contains.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/rpc/endpoint.h"

namespace headrace::rpc {

enum class CredentialKind { kNone, kApplicationDefault, kAccessToken, kFile };

struct Credentials {
  CredentialKind kind = CredentialKind::kApplicationDefault;
  std::string source{};  // kAccessToken: name of the environment variable; kFile: path of the file

  bool operator==(const Credentials&) const = default;
};

/// The option `credentials`: "none", "adc", "token:ENV_NAME", or the path of a credential file (see credential_file.h). Empty: none for a
/// plaintext endpoint, else adc. Anything but "none" beside a plaintext endpoint is refused; kinds that are not built are refused by name.
/// Reads nothing.
arrow::Result<Credentials> ParseCredentials(std::string_view value, const Endpoint& endpoint);

/// The option `ca_bundle` beside a plaintext endpoint, where it would act on nothing: an error.
arrow::Status CheckCaBundle(std::string_view value, const Endpoint& endpoint);

/// Where Application Default Credentials have their file: what GOOGLE_APPLICATION_CREDENTIALS names, else gcloud's below HOME. Empty when
/// neither variable is set; the file need not be there.
std::string DefaultCredentialPath();

/// The access token in the environment variable, checked to be what a header can hold.
arrow::Result<std::string> LoadAccessToken(const Credentials& credentials);

}  // namespace headrace::rpc
