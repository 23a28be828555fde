#include "headrace/rpc/credential_file.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/rpc/http_client.h"
#include "headrace/rpc/jwt.h"

namespace headrace::rpc {
namespace {

constexpr std::string_view kOption = "credentials";
// A key file is about 2.4 kB; anything much longer is another file.
constexpr int64_t kLongestFile = 64 << 10;
constexpr char kGoogleTokenUri[] = "https://oauth2.googleapis.com/token";
// What Google's own files name; of these services a self-signed token is taken as it is (AIP-4111).
constexpr std::array<std::string_view, 3> kGoogleTokenUris = {kGoogleTokenUri, "https://accounts.google.com/o/oauth2/token",
                                                              "https://www.googleapis.com/oauth2/v4/token"};
constexpr std::string_view kUniverse = "googleapis.com";
// Kinds that Google's tools write; only these names are repeated in an error.
constexpr std::array<std::string_view, 4> kUnbuiltTypes = {"external_account", "external_account_authorized_user",
                                                           "impersonated_service_account", "gdch_service_account"};

// Neither path nor cause goes into a text: both have been seen to leak key material into logs.
arrow::Status FileError(std::string_view why) {
  return MakeError({.code = Code::kUnauthenticated, .resource = std::string(kOption), .reason = "CREDENTIALS"},
                   fmt::format("the file of the option credentials could not be loaded: {}", why));
}

/// The text of a field; nothing when there is none, or when it is no text.
std::optional<std::string> Field(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

arrow::Result<std::string> Needed(const nlohmann::json& json, const char* name) {
  auto text = Field(json, name);
  if (!text.has_value() || text->empty()) return FileError(fmt::format("it has no \"{}\"", name));
  return *std::move(text);
}

/// What the file names, checked; empty when it names none.
arrow::Result<std::string> TokenUri(const nlohmann::json& json) {
  if (!json.contains("token_uri")) return std::string();
  ARROW_ASSIGN_OR_RAISE(auto uri, Needed(json, "token_uri"));
  const auto checked = CheckSecretUrl("its \"token_uri\"", uri);
  if (!checked.ok()) return FileError(checked.status().message());
  return uri;
}

bool IsGoogles(std::string_view uri) { return std::find(kGoogleTokenUris.begin(), kGoogleTokenUris.end(), uri) != kGoogleTokenUris.end(); }

/// It goes into a header as it is. Also the old ids with a domain ("example.com:project").
bool IsProject(std::string_view name) {
  return name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
         });
}

arrow::Result<CredentialFile> ParseKey(const nlohmann::json& json) {
  ServiceAccountKey key;
  ARROW_ASSIGN_OR_RAISE(key.client_email, Needed(json, "client_email"));
  ARROW_ASSIGN_OR_RAISE(key.private_key_id, Needed(json, "private_key_id"));
  ARROW_ASSIGN_OR_RAISE(key.private_key, Needed(json, "private_key"));
  if (!IsRsaKey(key.private_key)) return FileError("its \"private_key\" is no RSA key");
  ARROW_ASSIGN_OR_RAISE(key.token_uri, TokenUri(json));
  if (IsGoogles(key.token_uri)) key.token_uri.clear();
  return key;
}

arrow::Result<CredentialFile> ParseUser(const nlohmann::json& json) {
  AuthorizedUser user;
  ARROW_ASSIGN_OR_RAISE(user.client_id, Needed(json, "client_id"));
  ARROW_ASSIGN_OR_RAISE(user.client_secret, Needed(json, "client_secret"));
  ARROW_ASSIGN_OR_RAISE(user.refresh_token, Needed(json, "refresh_token"));
  ARROW_ASSIGN_OR_RAISE(user.token_uri, TokenUri(json));
  if (user.token_uri.empty()) user.token_uri = kGoogleTokenUri;
  user.quota_project = Field(json, "quota_project_id").value_or("");
  if (!IsProject(user.quota_project)) return FileError("its \"quota_project_id\" is no project");
  return user;
}

}  // namespace

arrow::Result<CredentialFile> ParseCredentialFile(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return FileError("it is not a JSON object");
  const auto type = Field(json, "type");
  if (!type.has_value()) return FileError("it has no \"type\"");
  if (const auto universe = Field(json, "universe_domain"); universe.has_value() && *universe != kUniverse) {
    return Unsupported(std::string(kOption), "credentials of a universe domain other than googleapis.com are not supported");
  }
  if (*type == "service_account") return ParseKey(json);
  if (*type == "authorized_user") return ParseUser(json);
  const bool known = std::find(kUnbuiltTypes.begin(), kUnbuiltTypes.end(), *type) != kUnbuiltTypes.end();
  return Unsupported(std::string(kOption),
                     fmt::format("credentials of the kind {} are not supported as a file; use the key of a service account or "
                                 "the file of an authorized user, or adc, none, token:ENV_NAME",
                                 known ? *type : std::string("in this file")));
}

arrow::Result<CredentialFile> LoadCredentialFile(const Credentials& credentials, FileSystem* files) {
  auto text = files->ReadAll(credentials.source, kLongestFile);
  if (!text.ok()) return FileError("it is missing, unreadable or too long");
  return ParseCredentialFile(*text);
}

arrow::Result<std::optional<CredentialFile>> FindDefaultCredentialFile(const std::string& path, FileSystem* files) {
  if (path.empty()) return std::nullopt;
  const auto text = files->ReadAll(path, kLongestFile);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto type = json.is_object() ? Field(json, "type") : std::nullopt;
  if (type != "service_account" && type != "authorized_user") return std::nullopt;
  ARROW_ASSIGN_OR_RAISE(auto file, ParseCredentialFile(*text));
  return file;
}

}  // namespace headrace::rpc
