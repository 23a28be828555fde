// A real token server on 127.0.0.1, with or without TLS, that follows a script of faults. For tests.
//
// It checks what it is asked with (signature, audience, scope and times of an assertion; the secrets of an authorized user), and its n-th
// token is "token-n". Any thread may call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/clock.h"

namespace headrace::rpc {

/// What one request meets.
struct TokenStep {
  int status = 200;
  std::string body{};     // empty with the status 200: a token
  std::string headers{};  // further ones, each with its line end
  std::chrono::milliseconds delay{0};
  bool drop = false;       // the connection is closed without an answer
  bool cut = false;        // it is closed in the middle of the answer
  bool hang = false;       // no answer until the server goes
  bool hold = false;       // no answer until Release
  int64_t huge_bytes = 0;  // a body of so many bytes
  bool no_http = false;    // bytes that are no HTTP
};

class TokenServer {
 public:
  /// Assertions are checked against the time of `clock`.
  explicit TokenServer(Clock* clock, bool tls = false);
  ~TokenServer();

  std::string uri() const;
  /// The n-th request from now meets the n-th step; further ones get a token.
  void Script(std::vector<TokenStep> steps);
  /// Every request from now meets it.
  void Always(TokenStep step);
  void set_lifetime(int64_t seconds) { lifetime_ = seconds; }
  /// Steps that hold go on, from now on.
  void Release() { released_ = true; }
  /// Closes the port; later connections are refused until Up.
  void Down();
  void Up();

  int64_t requests() const { return requests_; }
  int64_t issued() const { return issued_; }
  /// Waits (at most 30 s) until so many requests came.
  bool WaitForRequests(int64_t count) const;
  /// The bodies of all requests, assertions and secrets in them.
  std::vector<std::string> bodies() const;

 private:
  struct Connection;
  void Listen();
  void Run(int socket);
  void Serve(int client);
  std::string Answer(const std::string& body, TokenStep* step);
  std::string Judge(const std::map<std::string, std::string>& form) const;
  TokenStep NextStep();

  Clock* const clock_;
  const bool tls_;
  uint16_t port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> released_{false};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> issued_{0};
  std::atomic<int64_t> lifetime_{3600};
  mutable std::mutex mutex_;
  std::vector<TokenStep> script_;
  bool always_ = false;
  std::vector<std::string> bodies_;
  std::vector<std::jthread> connections_;
  std::jthread listener_;
};

}  // namespace headrace::rpc
