// What a credential file holds: a service account's key, or an authorized user's refresh token.
//
// Plain values with secrets in them: never printed, never persisted. No error text holds any of a file's content or its path.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "headrace/base/error.h"
#include "headrace/base/file_system.h"
#include "headrace/rpc/credentials.h"

namespace headrace::rpc {

struct ServiceAccountKey {
  std::string client_email{};
  std::string private_key_id{};
  std::string private_key{};  // PEM of an RSA key, checked to be one
  std::string token_uri{};    // empty = Google's: then tokens are signed here and no token server is asked
};

struct AuthorizedUser {
  std::string client_id{};
  std::string client_secret{};
  std::string refresh_token{};
  std::string token_uri{};      // Google's when the file names none
  std::string quota_project{};  // "quota_project_id": used when the option quota_project is not given
};

using CredentialFile = std::variant<ServiceAccountKey, AuthorizedUser>;

/// Checks every field that is used. Other kinds of file are refused by name; a token_uri that would send secrets in plaintext over a
/// network, too.
arrow::Result<CredentialFile> ParseCredentialFile(std::string_view text);
/// The file that `credentials` (of the kind kFile) names.
arrow::Result<CredentialFile> LoadCredentialFile(const Credentials& credentials, FileSystem* files);
/// The file of Application Default Credentials at `path` when it is of one of our two kinds; nothing when there is none, or when it is of
/// another kind.
arrow::Result<std::optional<CredentialFile>> FindDefaultCredentialFile(const std::string& path, FileSystem* files);

}  // namespace headrace::rpc
