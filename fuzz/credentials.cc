// What token servers answer, credential files, the URLs in them, and the details of a gRPC status.
#include <chrono>

#include <google/protobuf/stubs/logging.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "fuzz/fuzz_target.h"
#include "headrace/rpc/credential_file.h"
#include "headrace/rpc/http_client.h"
#include "headrace/rpc/retry.h"
#include "headrace/rpc/token_fetcher.h"

namespace headrace::fuzz {
namespace {

void Require(bool good) {
  if (!good) __builtin_trap();
}

bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return true;
}

std::string RetryInfo() {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(3);
  google::rpc::Status status;
  status.set_code(8);
  status.add_details()->PackFrom(info);
  return status.SerializeAsString();
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  // Protobuf writes a line for every text that is no UTF-8.
  [[maybe_unused]] static const auto quiet = google::protobuf::SetLogHandler(nullptr);
  if (const auto token = rpc::ParseTokenAnswer(bytes); token.ok()) {
    Require(rpc::IsTokenText(token->text));
    Require(token->lifetime > Duration{0} && token->lifetime <= std::chrono::hours{12});
  }
  // What is repeated of a refusal is short, printable, and no part of what was sent.
  const std::string told = rpc::DescribeTokenRefusal(bytes, "secret=abracadabra");
  Require(told.size() < 256 && IsPrintable(told) && told.find("abracadabra") == std::string::npos);
  if (const auto file = rpc::ParseCredentialFile(bytes); file.ok()) {
    if (const auto* user = std::get_if<rpc::AuthorizedUser>(&*file)) Require(rpc::CheckSecretUrl("token_uri", user->token_uri).ok());
  }
  if (const auto origin = rpc::CheckSecretUrl("token_uri", std::string(bytes)); origin.ok()) {
    Require(origin->starts_with("https://") || origin->starts_with("http://127.") || origin->starts_with("http://localhost:") ||
            origin->starts_with("http://[::1]:"));
  }
  if (const auto delay = rpc::ParseRetryInfo(bytes)) Require(*delay >= Duration{0} && *delay <= rpc::kLongestServerDelay);
}

std::vector<std::string> Seeds() {
  return {
      "",
      R"({"access_token":"ya29.a","expires_in":3599,"token_type":"Bearer"})",
      R"({"error":"invalid_grant","error_description":"Invalid JWT Signature, 'abracadabra' (60 minutes)."})",
      R"({"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c","quota_project_id":"p"})",
      R"({"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c","token_uri":"http://127.0.0.1:1/t"})",
      R"({"type":"service_account","client_email":"a","private_key_id":"b","private_key":"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"})",
      "https://user:password@sts.example:8443/token?a=b#c",
      "http://[::1]:80/",
      RetryInfo()};
}

}  // namespace headrace::fuzz
