#include "headrace/rpc/endpoint.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace headrace::rpc {
namespace {

constexpr std::string_view kStorageHost = "bigquerystorage.googleapis.com";
constexpr std::string_view kStorageOption = "bigquery_storage_endpoint";
constexpr const char* kStorageVariable = "BIGQUERY_STORAGE_EMULATOR_HOST";
constexpr uint16_t kTlsPort = 443;

arrow::Status WrongEndpoint(std::string_view option, std::string_view value, std::string_view why) {
  return InvalidOption(std::string(option), fmt::format("{} \"{}\" {}; write host:port, for example localhost:9060", option, value, why));
}

/// The two kinds of whitespace: ASCII, and Unicode's in UTF-8 that a copied text brings along (no-break space, em space ..., ideographic
/// space).
bool HasSpace(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; })) return true;
  return text.find("\xC2\xA0") != std::string_view::npos || text.find("\xE2\x80\x8") != std::string_view::npos ||
         text.find("\xE3\x80\x80") != std::string_view::npos;
}

}  // namespace

std::string Endpoint::target() const {
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return bare_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

arrow::Result<Endpoint> ParseHostPort(std::string_view option, std::string_view value) {
  if (HasSpace(value)) return WrongEndpoint(option, value, "holds white space");
  const size_t colon = value.rfind(':');
  if (colon == std::string_view::npos) return WrongEndpoint(option, value, "has no port");
  const std::string_view host = value.substr(0, colon);
  const std::string_view digits = value.substr(colon + 1);
  if (host.empty()) return WrongEndpoint(option, value, "has no host");
  if (host.find('/') != std::string_view::npos) return WrongEndpoint(option, value, "has a slash in its host");
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return WrongEndpoint(option, value, "has a port that is not made of digits only");
  }
  int port = 0;
  for (char digit : digits) port = std::min(port * 10 + (digit - '0'), 1'000'000);
  if (port < 1 || port > 65'535) return WrongEndpoint(option, value, "has a port outside 1..65535");
  return Endpoint{.host = std::string(host), .port = static_cast<uint16_t>(port), .plaintext = true, .given_by = std::string(option)};
}

arrow::Result<Endpoint> ParseEndpoint(std::string_view option, std::string_view value) {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  if (value.starts_with(kHttp)) {
    // The value is named whole in the error, not the part behind the scheme.
    auto endpoint = ParseHostPort(option, value.substr(kHttp.size()));
    return endpoint.ok() ? endpoint : arrow::Result<Endpoint>(WrongEndpoint(option, value, "is not http://host:port"));
  }
  if (!value.starts_with(kHttps)) return ParseHostPort(option, value);
  const std::string_view rest = value.substr(kHttps.size());
  const std::string with_port = rest.find(':') == std::string_view::npos ? fmt::format("{}:{}", rest, kTlsPort) : std::string(rest);
  auto endpoint = ParseHostPort(option, with_port);
  if (!endpoint.ok()) return WrongEndpoint(option, value, "is not https://host or https://host:port");
  endpoint->plaintext = false;
  return endpoint;
}

arrow::Result<Endpoint> ResolveStorageEndpoint(std::string_view value) {
  if (!value.empty()) return ParseEndpoint(kStorageOption, value);
  const char* variable = std::getenv(kStorageVariable);
  if (variable != nullptr && *variable != '\0') return ParseEndpoint(kStorageVariable, variable);
  return Endpoint{.host = std::string(kStorageHost), .port = kTlsPort};
}

}  // namespace headrace::rpc
