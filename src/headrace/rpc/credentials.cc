#include "headrace/rpc/credentials.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "headrace/rpc/token_fetcher.h"

namespace headrace::rpc {
namespace {

constexpr std::string_view kOption = "credentials";
constexpr std::string_view kTokenPrefix = "token:";
// What other tools know as a kind of credentials; refused by name so that none of them is taken for the path of a file.
constexpr std::array<std::string_view, 9> kUnbuiltKinds = {"impersonate", "authorized_user", "external_account",
                                                           "external",    "api_key",         "metadata_server",
                                                           "metadata",    "gcloud",          "workload_identity"};

std::string Offer() { return "use adc, none, token:ENV_NAME, or the path of a service account's key file or of an authorized user's file"; }

bool IsVariableName(std::string_view name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

arrow::Result<Credentials> ParseKind(std::string_view value) {
  if (value == "none") return Credentials{.kind = CredentialKind::kNone};
  if (value == "adc") return Credentials{.kind = CredentialKind::kApplicationDefault};
  if (value.starts_with(kTokenPrefix)) {
    const std::string_view name = value.substr(kTokenPrefix.size());
    // The text is not repeated: people put the token itself here by mistake.
    if (!IsVariableName(name)) {
      return InvalidOption(std::string(kOption),
                           "credentials token:ENV_NAME takes the name of an environment variable that holds the token");
    }
    return Credentials{.kind = CredentialKind::kAccessToken, .source = std::string(name)};
  }
  const size_t first = value.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return InvalidOption(std::string(kOption), "credentials is blank; " + Offer());
  if (value[first] == '{') return Unsupported(std::string(kOption), "credentials as inline JSON is not supported; " + Offer());
  const std::string_view kind = value.substr(0, value.find(':'));
  if (std::find(kUnbuiltKinds.begin(), kUnbuiltKinds.end(), kind) != kUnbuiltKinds.end()) {
    return Unsupported(std::string(kOption), fmt::format("credentials of the kind {} are not supported; {}", kind, Offer()));
  }
  return Credentials{.kind = CredentialKind::kFile, .source = std::string(value)};
}

}  // namespace

arrow::Result<Credentials> ParseCredentials(std::string_view value, const Endpoint& endpoint) {
  if (value.empty()) return Credentials{.kind = endpoint.plaintext ? CredentialKind::kNone : CredentialKind::kApplicationDefault};
  ARROW_ASSIGN_OR_RAISE(Credentials credentials, ParseKind(value));
  if (endpoint.plaintext && credentials.kind != CredentialKind::kNone) {
    return InvalidOption(
        std::string(kOption),
        fmt::format("credentials cannot be sent to {} ({}): the connection is not encrypted. Leave out one of the two, or give the "
                    "endpoint as https://host:port",
                    endpoint.target(), endpoint.given_by));
  }
  return credentials;
}

arrow::Status CheckCaBundle(std::string_view value, const Endpoint& endpoint) {
  if (value.empty() || !endpoint.plaintext) return arrow::Status::OK();
  return InvalidOption("ca_bundle", fmt::format("ca_bundle is about encrypted connections, but the one to {} ({}) is not; leave out one "
                                                "of the two, or give the endpoint as https://host:port",
                                                endpoint.target(), endpoint.given_by));
}

std::string DefaultCredentialPath() {
  const char* named = std::getenv("GOOGLE_APPLICATION_CREDENTIALS");
  if (named != nullptr && *named != '\0') return named;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return fmt::format("{}/.config/gcloud/application_default_credentials.json", home);
}

arrow::Result<std::string> LoadAccessToken(const Credentials& credentials) {
  const char* token = std::getenv(credentials.source.c_str());
  if (token == nullptr || *token == '\0') {
    return MakeError({.code = Code::kUnauthenticated, .resource = std::string(kOption), .reason = "CREDENTIALS"},
                     fmt::format("the environment variable {} named by credentials holds no access token", credentials.source));
  }
  if (!IsTokenText(token)) {
    return MakeError({.code = Code::kUnauthenticated, .resource = std::string(kOption), .reason = "CREDENTIALS"},
                     fmt::format("what the environment variable {} named by credentials holds is no access token: it is too long, or has "
                                 "spaces, line ends or characters beyond ASCII",
                                 credentials.source));
  }
  return std::string(token);
}

}  // namespace headrace::rpc
