#include "headrace/cli/metrics_server.h"

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "headrace/base/prometheus.h"

namespace headrace::cli {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kThreads = 2;  // one scraper, and a person who looks
constexpr time_t kTimeoutSeconds = 5;
constexpr time_t kIdleSeconds = 2;            // between a connection and its request
constexpr size_t kMostPostedBytes = 1 << 10;  // nothing is taken

}  // namespace

struct MetricsServer::Impl {
  httplib::Server server;
  std::thread thread;
};

MetricsServer::MetricsServer() = default;

MetricsServer::~MetricsServer() {
  if (impl_ == nullptr) return;
  impl_->server.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

arrow::Result<std::string> MetricsServer::Start(int port) {
  // The library's server makes the process ignore SIGPIPE; what a closed pipe does to the program is not its matter.
  struct sigaction before{};
  sigaction(SIGPIPE, nullptr, &before);
  auto impl = std::make_unique<Impl>();
  sigaction(SIGPIPE, &before, nullptr);
  httplib::Server& server = impl->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostPostedBytes);
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  // An idle connection would hold a thread, and the end.
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kIdleSeconds);
  // The library's default lets two processes share a port.
  server.set_socket_options([](socket_t socket) {
    int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server.Get("/metrics", [this](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(Text(), std::string(kPrometheusContentType));
  });
  int bound = port;
  if (port == 0) bound = server.bind_to_any_port(kLoopback);
  if (bound <= 0 || (port != 0 && !server.bind_to_port(kLoopback, port))) {
    return MakeError({.code = Code::kUnavailable, .resource = "metrics_port", .reason = "PORT_TAKEN"},
                     fmt::format("--metrics-port {}: cannot listen on {}:{}: the port is in use or not allowed. Give another one, or 0 for "
                                 "any that is free",
                                 port, kLoopback, port));
  }
  impl->thread = std::thread([&server] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    server.listen_after_bind();
  });
  // Stop has no effect before the server runs. It runs as soon as its thread does, or never when the thread failed.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  while (!server.is_running() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  impl_ = std::move(impl);
  return fmt::format("http://{}:{}/metrics", kLoopback, bound);
}

void MetricsServer::Follow(std::function<void()> refresh) {
  std::lock_guard<std::mutex> guard(mutex_);
  refresh_ = std::move(refresh);
}

std::string MetricsServer::Text() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (refresh_) refresh_();
  return PrometheusText(registry_.Collect());
}

}  // namespace headrace::cli
