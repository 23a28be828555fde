#include "headrace/rpc/http_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

namespace headrace::rpc {
namespace {

// What a broken, absent or overloaded peer looks like. Everything else (a certificate that is not trusted, an answer that is no HTTP) would
// be the same at the next attempt.
constexpr std::array kTransient = {
    CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR,
    CURLE_GOT_NOTHING,           CURLE_SEND_ERROR,           CURLE_RECV_ERROR,      CURLE_PARTIAL_FILE,       CURLE_HTTP2,
    CURLE_HTTP2_STREAM};
constexpr std::array kUnreached = {CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR};
constexpr size_t kLongestUrl = 2048;
constexpr int kLookMs = 1'000;  // between two looks at the clock; a stop wakes the wait
constexpr int64_t kLongestRetryAfter = int64_t{24} * 3600;

struct Received {
  std::string body{};
  int64_t header_bytes = 0;
  int64_t most = 0;
  bool too_long = false;
};

size_t TakeBody(char* data, size_t size, size_t count, void* to) {
  auto* received = static_cast<Received*>(to);
  const size_t bytes = size * count;
  if (static_cast<int64_t>(received->body.size() + bytes) > received->most) {
    received->too_long = true;
    return 0;  // ends the transfer
  }
  received->body.append(data, bytes);
  return bytes;
}

size_t CountHeader(char*, size_t size, size_t count, void* to) {
  auto* received = static_cast<Received*>(to);
  received->header_bytes += static_cast<int64_t>(size * count);
  if (received->header_bytes <= received->most) return size * count;
  received->too_long = true;
  return 0;
}

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// Once in a process; libcurl asks for it before its first use, and is never shut down: other users of the process may have it.
bool Initialise() {
  static const bool done = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return done;
}

template <typename Value>
void Set(CURL* easy, CURLoption option, Value value, bool* good) {
  *good = curl_easy_setopt(easy, option, value) == CURLE_OK && *good;
}

bool SetUp(CURL* easy, const HttpRequest& request, Received* received, curl_slist* headers) {
  const bool plaintext = request.url.starts_with("http:");
  bool good = true;
  Set(easy, CURLOPT_URL, request.url.c_str(), &good);
  Set(easy, CURLOPT_PROTOCOLS_STR, plaintext ? "http" : "https", &good);
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L, &good);
  Set(easy, CURLOPT_POST, 1L, &good);
  Set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()), &good);
  Set(easy, CURLOPT_POSTFIELDS, request.body.c_str(), &good);
  Set(easy, CURLOPT_HTTPHEADER, headers, &good);
  Set(easy, CURLOPT_USERAGENT, "headrace/" HEADRACE_VERSION, &good);
  Set(easy, CURLOPT_NOSIGNAL, 1L, &good);  // the process's signals are not ours
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_limit.count()), &good);
  Set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.limit.count()), &good);
  Set(easy, CURLOPT_WRITEFUNCTION, TakeBody, &good);
  Set(easy, CURLOPT_WRITEDATA, received, &good);
  Set(easy, CURLOPT_HEADERFUNCTION, CountHeader, &good);
  Set(easy, CURLOPT_HEADERDATA, received, &good);
  if (plaintext) Set(easy, CURLOPT_PROXY, "", &good);
  if (!request.ca_certificates.empty()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): libcurl's type has no const; CURL_BLOB_NOCOPY only reads.
    curl_blob blob{
        .data = const_cast<char*>(request.ca_certificates.data()), .len = request.ca_certificates.size(), .flags = CURL_BLOB_NOCOPY};
    Set(easy, CURLOPT_CAINFO_BLOB, &blob, &good);
  }
  return good;
}

/// Runs the one transfer of `multi` to its end; nothing when it was stopped.
std::optional<CURLcode> Transfer(CURLM* multi, const std::stop_token& stop) {
  std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
  int running = 1;
  while (running > 0) {
    if (stop.stop_requested()) return std::nullopt;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
    if (running > 0 && curl_multi_poll(multi, nullptr, 0, kLookMs, nullptr) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
  }
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi, &left);
  return message != nullptr && message->msg == CURLMSG_DONE ? message->data.result : CURLE_OUT_OF_MEMORY;
}

std::optional<Duration> RetryAfter(CURL* easy) {
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds <= 0) return std::nullopt;
  return std::chrono::seconds{std::min<int64_t>(seconds, kLongestRetryAfter)};
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

std::optional<std::string> UrlPart(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return std::nullopt;
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::variant<HttpAnswer, HttpFault> HttpPost(const HttpRequest& request, const std::stop_token& stop) {
  if (!Initialise()) return HttpFault{.text = "libcurl could not be initialised"};
  // Freed from the last to the first.
  const std::unique_ptr<curl_slist, FreeList> headers(curl_slist_append(nullptr, "Accept: application/json"));
  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  const std::unique_ptr<CURLM, FreeMulti> multi(curl_multi_init());
  Received received{.most = request.most_answer_bytes};
  if (easy == nullptr || multi == nullptr || headers == nullptr || !SetUp(easy.get(), request, &received, headers.get())) {
    return HttpFault{.text = "libcurl could not be set up"};
  }
  if (curl_multi_add_handle(multi.get(), easy.get()) != CURLM_OK) return HttpFault{.text = "libcurl could not be set up"};
  const auto result = Transfer(multi.get(), stop);
  curl_multi_remove_handle(multi.get(), easy.get());
  if (!result.has_value()) return HttpFault{.text = "it was stopped", .transient = true};
  if (received.too_long) return HttpFault{.text = fmt::format("the answer is longer than {} bytes", request.most_answer_bytes)};
  if (*result != CURLE_OK) {
    curl_off_t connected_after = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_CONNECT_TIME_T, &connected_after);
    const bool no_connection = *result == CURLE_OPERATION_TIMEDOUT && connected_after == 0;
    // strerror's fixed texts: libcurl's longer ones may repeat parts of the request.
    return HttpFault{.text = curl_easy_strerror(*result),
                     .transient = std::find(kTransient.begin(), kTransient.end(), *result) != kTransient.end(),
                     .unreached = no_connection || std::find(kUnreached.begin(), kUnreached.end(), *result) != kUnreached.end()};
  }
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return HttpAnswer{.status = static_cast<int>(status), .body = std::move(received.body), .retry_after = RetryAfter(easy.get())};
}

arrow::Result<std::string> CheckSecretUrl(std::string_view what, const std::string& url) {
  const auto wrong = [&](std::string_view why) { return InvalidOption(std::string(what), fmt::format("{} {}", what, why)); };
  const std::unique_ptr<CURLU, FreeUrl> parsed(Initialise() ? curl_url() : nullptr);
  const bool printable = std::all_of(url.begin(), url.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (parsed == nullptr || url.size() > kLongestUrl || !printable ||
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return wrong("is no URL");
  }
  const auto scheme = UrlPart(parsed.get(), CURLUPART_SCHEME);
  const auto host = UrlPart(parsed.get(), CURLUPART_HOST);
  const auto port = UrlPart(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!scheme || !host || !port || host->empty()) return wrong("is no URL of http or https");
  if (UrlPart(parsed.get(), CURLUPART_USER) || UrlPart(parsed.get(), CURLUPART_PASSWORD) || UrlPart(parsed.get(), CURLUPART_FRAGMENT)) {
    return wrong("has a user, a password or a fragment");
  }
  if (*scheme == "http" && !IsLoopback(*host)) return wrong("is http beyond this machine: what is sent there is secret, so use https");
  if (*scheme != "http" && *scheme != "https") return wrong("is neither https nor http");
  return fmt::format("{}://{}:{}", *scheme, *host, *port);
}

void AppendFormField(std::string* form, std::string_view name, std::string_view value) {
  if (!form->empty()) *form += '&';
  *form += name;
  *form += '=';
  for (const char c : value) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      *form += c;
    } else {
      *form += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace headrace::rpc
