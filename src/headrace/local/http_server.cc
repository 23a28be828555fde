#include "headrace/local/http_server.h"

#include <csignal>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

namespace headrace::local {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kMostPostedBytes = 16 << 20;  // a schema of 10,000 columns with descriptions
constexpr size_t kThreads = 8;
constexpr time_t kTimeoutSeconds = 5;
constexpr time_t kIdleSeconds = 2;  // between a connection and its request
constexpr const char* kJson = "application/json";
constexpr const char* kJsonUtf8 = "application/json; charset=UTF-8";

// JSON strings by hand: the text of an error may hold anything.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      if (c == '"' || c == '\\') quoted.push_back('\\');
      quoted.push_back(c);
    }
  }
  return quoted + "\"";
}

// The library's server makes the whole process ignore SIGPIPE. A library of ours leaves signals alone, so the disposition is put back and
// the server's own threads block the signal instead.
template <typename Make>
auto KeepingSignals(Make make) {
  struct sigaction before{};
  sigaction(SIGPIPE, nullptr, &before);
  auto made = make();
  sigaction(SIGPIPE, &before, nullptr);
  return made;
}

void AnswerRest(const HttpHandlers& handlers, const httplib::Request& request, httplib::Response& answer) {
  if (!RestApi::Serves(request.path)) {
    answer.status = 404;
    answer.set_content(
        fmt::format("{{\"error\":{{\"code\":404,\"message\":{},\"status\":\"NOT_FOUND\"}}}}", Quoted("Not found: " + request.path)),
        kJsonUtf8);
    return;
  }
  RestRequest rest{.method = request.method,
                   .path = request.path,
                   .if_match = request.get_header_value("If-Match"),
                   .if_none_match = request.get_header_value("If-None-Match"),
                   .host = request.get_header_value("Host"),
                   .body = request.body};
  // Clients whose HTTP library knows no PATCH send a POST that says so.
  if (request.method == "POST" && request.has_header("X-HTTP-Method-Override")) {
    rest.method = request.get_header_value("X-HTTP-Method-Override");
  }
  for (const auto& [name, value] : request.params) rest.query.emplace(name, value);
  RestAnswer made = handlers.rest(rest);
  answer.status = made.status;
  if (!made.etag.empty()) answer.set_header("ETag", made.etag);
  if (!made.body.empty()) answer.set_content(made.body, kJsonUtf8);
}

}  // namespace

struct HttpServer::Impl {
  std::unique_ptr<httplib::Server> server = KeepingSignals([] { return std::make_unique<httplib::Server>(); });
  std::thread thread;
};

HttpServer::HttpServer() = default;
HttpServer::~HttpServer() { Stop(); }

arrow::Result<std::string> HttpServer::Start(int port, const HttpHandlers& handlers) {
  impl_ = std::make_unique<Impl>();
  httplib::Server& server = *impl_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostPostedBytes);
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  // The library's default lets two processes share a port.
  server.set_socket_options([](socket_t socket) {
    int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  // An idle connection would hold a thread, and Stop.
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.Get("/headrace/health",
             [=](const httplib::Request&, httplib::Response& answer) { answer.set_content("{\"status\":\"ok\"}", kJson); });
  server.Get("/headrace/counters",
             [=](const httplib::Request&, httplib::Response& answer) { answer.set_content(handlers.counters(), kJson); });
  server.Get("/headrace/faults", [=](const httplib::Request&, httplib::Response& answer) { answer.set_content(handlers.faults(), kJson); });
  auto set_faults = [=](const std::string& body, httplib::Response& answer) {
    arrow::Status status = handlers.set_faults(body);
    answer.status = status.ok() ? 200 : 400;
    answer.set_content(status.ok() ? handlers.faults() : fmt::format("{{\"error\":{}}}", Quoted(status.message())), kJson);
  };
  server.Post("/headrace/faults", [=](const httplib::Request& request, httplib::Response& answer) { set_faults(request.body, answer); });
  server.Delete("/headrace/faults", [=](const httplib::Request&, httplib::Response& answer) { set_faults("{\"rules\":[]}", answer); });
  auto rest = [=](const httplib::Request& request, httplib::Response& answer) { AnswerRest(handlers, request, answer); };
  server.Get(".*", rest).Post(".*", rest).Put(".*", rest).Patch(".*", rest).Delete(".*", rest);

  int bound = port;
  if (port == 0) bound = server.bind_to_any_port(kLoopback);
  if (bound < 0 || (port != 0 && !server.bind_to_port(kLoopback, port))) {
    impl_.reset();
    return MakeError({.code = Code::kUnavailable, .service = "local service", .resource = fmt::format("{}:{}", kLoopback, port)},
                     fmt::format("Cannot listen on {}:{} for the HTTP endpoint: the port is in use or not allowed. Use another --port.",
                                 kLoopback, port));
  }
  impl_->thread = std::thread([&server] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    server.listen_after_bind();
  });
  // Stop has no effect before the server runs. It runs as soon as its thread does, or never when the thread failed.
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  while (!server.is_running() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return fmt::format("{}:{}", kLoopback, bound);
}

void HttpServer::Stop() {
  if (impl_ == nullptr) return;
  impl_->server->stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_.reset();
}

}  // namespace headrace::local
