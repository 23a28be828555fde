#include "headrace/rpc/credentials.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace headrace::rpc {
namespace {

constexpr std::string_view kOption = "credentials";
constexpr std::string_view kTokenPrefix = "token:";
// A key file is about 2.4 kB; anything much longer is another file.
constexpr int64_t kLongestKeyFile = 64 << 10;
// What other tools know as a kind of credentials; refused by name so that none of them is taken for the path of a file.
constexpr std::array<std::string_view, 9> kUnbuiltKinds = {"impersonate", "authorized_user", "external_account",
                                                           "external",    "api_key",         "metadata_server",
                                                           "metadata",    "gcloud",          "workload_identity"};

std::string Offer() { return "use adc, none, token:ENV_NAME, or the path of a service-account key file"; }

arrow::Status KeyFileError(std::string_view why) {
  return MakeError({.code = Code::kUnauthenticated, .resource = std::string(kOption), .reason = "CREDENTIALS"},
                   fmt::format("the service-account key file given by the option credentials could not be loaded: {}", why));
}

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
  return Credentials{.kind = CredentialKind::kServiceAccountKey, .source = std::string(value)};
}

/// gRPC takes a key that it cannot parse, and fails each call later with a text that does not say so.
bool IsRsaKey(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> input(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  if (input == nullptr) return false;
  // The callback answers "no pass phrase"; OpenSSL's own would ask on the terminal.
  const auto no_phrase = [](char*, int, int, void*) { return 0; };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(PEM_read_bio_PrivateKey(input.get(), nullptr, no_phrase, nullptr),
                                                                &EVP_PKEY_free);
  ERR_clear_error();
  return key != nullptr && EVP_PKEY_base_id(key.get()) == EVP_PKEY_RSA;
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

arrow::Result<std::string> LoadServiceAccountKey(const Credentials& credentials, FileSystem* files) {
  // Neither path nor cause goes into the text: both have been seen to leak key material into logs (fact 1.0 "Credentials").
  auto text = files->ReadAll(credentials.source, kLongestKeyFile);
  if (!text.ok()) return KeyFileError("it is missing, unreadable or too long");
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return KeyFileError("it is not a JSON object");
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) return KeyFileError("it has no \"type\"");
  if (*type != "service_account") {
    const auto& name = type->get_ref<const std::string&>();
    const bool known = std::find(kUnbuiltKinds.begin(), kUnbuiltKinds.end(), name) != kUnbuiltKinds.end();
    return Unsupported(std::string(kOption), fmt::format("credentials of the kind {} are not supported as a key file; {}",
                                                         known ? name : std::string("in this file"), Offer()));
  }
  for (const char* field : {"private_key", "private_key_id", "client_email", "client_id"}) {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_string()) return KeyFileError(fmt::format("it has no \"{}\"", field));
  }
  if (!IsRsaKey(json["private_key"].get_ref<const std::string&>())) return KeyFileError("its \"private_key\" is no RSA key");
  return text;
}

arrow::Result<std::string> LoadAccessToken(const Credentials& credentials) {
  const char* token = std::getenv(credentials.source.c_str());
  if (token == nullptr || *token == '\0') {
    return MakeError({.code = Code::kUnauthenticated, .resource = std::string(kOption), .reason = "CREDENTIALS"},
                     fmt::format("the environment variable {} named by credentials holds no access token", credentials.source));
  }
  return std::string(token);
}

}  // namespace headrace::rpc
