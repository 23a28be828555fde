#include "headrace/rpc/token_server_testing.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "headrace/rpc/secrets_testing.h"

namespace headrace::rpc {
namespace {

constexpr int kLookMs = 5;

std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::map<std::string, std::string> ParseForm(const std::string& body) {
  std::map<std::string, std::string> form;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('&', at), body.size());
    const std::string field = body.substr(at, end - at);
    const size_t equals = std::min(field.find('='), field.size());
    form[field.substr(0, equals)] = equals < field.size() ? Unescape(field.substr(equals + 1)) : "";
    at = end + 1;
  }
  return form;
}

SSL_CTX* TlsContext() {
  static SSL_CTX* context = [] {
    SSL_CTX* made = SSL_CTX_new(TLS_server_method());
    const std::string pem = TestCertificatePem();
    const std::unique_ptr<BIO, decltype(&BIO_free)> input(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
    X509* certificate = PEM_read_bio_X509(input.get(), nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(made, certificate);
    X509_free(certificate);
    SSL_CTX_use_PrivateKey(made, TestKey());
    return made;
  }();
  return context;
}

}  // namespace

/// One client; closed with it.
struct TokenServer::Connection {
  Connection(int client, bool tls) : socket(client) {
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!tls) return;
    ssl = SSL_new(TlsContext());
    SSL_set_fd(ssl, socket);
    good = SSL_accept(ssl) == 1;
  }
  ~Connection() {
    if (ssl != nullptr) {
      if (good) SSL_shutdown(ssl);
      SSL_free(ssl);
    }
    close(socket);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Header and body of the one request; empty when the client went away.
  std::string ReadBody() {
    std::string text;
    while (good) {
      const size_t end = text.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t length_at = text.find("Content-Length: ");
        const size_t length = length_at < end ? std::stoul(text.substr(length_at + 16)) : 0;
        if (text.size() >= end + 4 + length) return text.substr(end + 4, length);
      }
      char bytes[4096];
      const auto got = ssl != nullptr ? SSL_read(ssl, bytes, sizeof bytes) : recv(socket, bytes, sizeof bytes, 0);
      if (got <= 0) return "";
      text.append(bytes, static_cast<size_t>(got));
    }
    return "";
  }

  void Write(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const size_t size = std::min<size_t>(text.size() - sent, 16 << 10);
      const auto written = ssl != nullptr ? SSL_write(ssl, text.data() + sent, static_cast<int>(size))
                                          : send(socket, text.data() + sent, size, MSG_NOSIGNAL);
      if (written <= 0) return;
      sent += static_cast<size_t>(written);
    }
  }

  const int socket;
  SSL* ssl = nullptr;
  bool good = true;
};

TokenServer::TokenServer(Clock* clock, bool tls) : clock_(clock), tls_(tls) { Listen(); }

TokenServer::~TokenServer() {
  stopped_ = true;
  Down();
  connections_.clear();
}

void TokenServer::Listen() {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listening, 64), 0);
  socklen_t size = sizeof address;
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  if (port_ == 0) port_ = ntohs(address.sin_port);
  listener_ = std::jthread([this, listening](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd look{.fd = listening, .events = POLLIN, .revents = 0};
      if (poll(&look, 1, kLookMs) == 1) Run(listening);
    }
    close(listening);
  });
}

void TokenServer::Run(int socket) {
  const int client = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  std::lock_guard<std::mutex> guard(mutex_);
  connections_.emplace_back([this, client] { Serve(client); });
}

void TokenServer::Down() { listener_ = std::jthread(); }

void TokenServer::Up() { Listen(); }

std::string TokenServer::uri() const { return fmt::format("{}://127.0.0.1:{}/token", tls_ ? "https" : "http", port_); }

void TokenServer::Script(std::vector<TokenStep> steps) {
  std::lock_guard<std::mutex> guard(mutex_);
  script_ = std::move(steps);
  std::reverse(script_.begin(), script_.end());
  always_ = false;
}

void TokenServer::Always(TokenStep step) {
  std::lock_guard<std::mutex> guard(mutex_);
  script_ = {std::move(step)};
  always_ = true;
}

TokenStep TokenServer::NextStep() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (script_.empty()) return {};
  TokenStep step = script_.back();
  if (!always_) script_.pop_back();
  return step;
}

bool TokenServer::WaitForRequests(int64_t count) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (requests_ < count && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return requests_ >= count;
}

std::vector<std::string> TokenServer::bodies() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return bodies_;
}

void TokenServer::Serve(int client) {
  Connection connection(client, tls_);
  const std::string body = connection.ReadBody();
  if (body.empty()) return;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    bodies_.push_back(body);
  }
  TokenStep step = NextStep();
  ++requests_;
  while ((step.hang || (step.hold && !released_)) && !stopped_) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  if (step.drop || step.hang) return;
  std::this_thread::sleep_for(step.delay);
  if (step.no_http) return connection.Write("\x16\x03 this is no HTTP\r\n\r\n");
  const std::string answer = Answer(body, &step);
  const std::string head =
      fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n", step.status,
                  step.headers, answer.size());
  connection.Write(head + (step.cut ? answer.substr(0, answer.size() / 2) : answer));
}

std::string TokenServer::Answer(const std::string& body, TokenStep* step) {
  if (step->huge_bytes > 0) return std::string(static_cast<size_t>(step->huge_bytes), ' ');
  if (!step->body.empty() || step->status != 200) return step->body;
  const std::string wrong = Judge(ParseForm(body));
  if (!wrong.empty()) {
    step->status = 400;
    return nlohmann::json{{"error", "invalid_grant"}, {"error_description", wrong}}.dump();
  }
  return nlohmann::json{{"access_token", fmt::format("token-{}", ++issued_)}, {"expires_in", lifetime_.load()}, {"token_type", "Bearer"}}
      .dump();
}

std::string TokenServer::Judge(const std::map<std::string, std::string>& form) const {
  const auto field = [&](const char* name) {
    const auto found = form.find(name);
    return found == form.end() ? std::string() : found->second;
  };
  if (field("grant_type") == "refresh_token") {
    const bool right =
        field("client_id") == "id.example" && field("client_secret") == kTestSecret && field("refresh_token") == kTestRefreshToken;
    return right ? "" : "wrong secrets";
  }
  if (field("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer") return "wrong grant";
  const auto claims = nlohmann::json::parse(VerifiedClaims(field("assertion")), nullptr, false);
  if (claims.is_discarded()) return "wrong signature";
  if (claims["iss"] != "reader@p.iam.example") return "wrong iss";
  if (claims["aud"] != uri()) return "wrong aud";
  if (claims["scope"] != "https://www.googleapis.com/auth/cloud-platform") return "wrong scope";
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(clock_->Now().time_since_epoch()).count();
  if (claims["iat"] > now || claims["exp"] <= now || claims["exp"].get<int64_t>() - claims["iat"].get<int64_t>() > 3600)
    return "wrong times";
  return "";
}

}  // namespace headrace::rpc
