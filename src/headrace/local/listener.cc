#include "headrace/local/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace headrace::local {
namespace {

// How long it lets connections wait that it has no descriptors for: asked again at once it would spin.
constexpr int kOutOfDescriptorsMs = 100;

arrow::Status SystemError(std::string_view what, const std::string& where) {
  return MakeError({.code = Code::kUnavailable, .service = "local service", .resource = where},
                   fmt::format("{} {}: {}", what, where, std::strerror(errno)));
}

void CloseAndForget(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

Listener::~Listener() { Stop(); }

arrow::Result<std::string> Listener::Bind(const std::string& address, int port) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    length = sizeof(*v4);
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    length = sizeof(*v6);
  } else {
    return InvalidOption("bind_address", fmt::format("\"{}\" is not a numeric address. Use 127.0.0.1 or ::1.", address));
  }
  std::string where = fmt::format("{}:{}", address, port);
  listening_ = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listening_ < 0) return SystemError("No socket for", where);
  int on = 1;
  setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // a restarted service finds its port free
  if (bind(listening_, reinterpret_cast<sockaddr*>(&storage), length) != 0 || listen(listening_, SOMAXCONN) != 0) {
    auto status = SystemError("Cannot listen on", where);
    CloseAndForget(&listening_);
    return status;
  }
  length = sizeof(storage);
  getsockname(listening_, reinterpret_cast<sockaddr*>(&storage), &length);
  if (storage.ss_family == AF_INET) return fmt::format("{}:{}", address, ntohs(v4->sin_port));
  return fmt::format("[{}]:{}", address, ntohs(v6->sin6_port));
}

arrow::Status Listener::Start(Accepted accepted) {
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) return SystemError("No eventfd for", "the listener");
  thread_ = std::thread([this, accepted = std::move(accepted)] { Run(accepted); });
  return arrow::Status::OK();
}

void Listener::Stop() {
  if (thread_.joinable()) {
    uint64_t one = 1;
    // The counter of an eventfd is far from full: the write cannot fail.
    [[maybe_unused]] ssize_t written = write(wake_, &one, sizeof(one));
    thread_.join();
  }
  CloseAndForget(&wake_);
  CloseAndForget(&listening_);
  std::lock_guard lock(mutex_);
  for (auto& [fd, duplicate] : duplicates_) close(duplicate);
  duplicates_.clear();
}

bool Listener::Break(int fd) {
  std::lock_guard lock(mutex_);
  auto found = duplicates_.find(fd);
  return found != duplicates_.end() && shutdown(found->second, SHUT_RDWR) == 0;
}

void Listener::BreakAll() {
  std::lock_guard lock(mutex_);
  for (auto& [fd, duplicate] : duplicates_) shutdown(duplicate, SHUT_RDWR);
}

void Listener::Run(const Accepted& accepted) {
  bool may_accept = true;
  while (true) {
    // poll() leaves out a negative descriptor.
    std::vector<pollfd> polled = {{wake_, POLLIN, 0}, {may_accept ? listening_ : -1, POLLIN, 0}};
    std::vector<int> numbers;
    {
      std::lock_guard lock(mutex_);
      for (auto& [fd, duplicate] : duplicates_) {
        polled.push_back({duplicate, 0, 0});  // no event but the end: POLLHUP and POLLERR
        numbers.push_back(fd);
      }
    }
    // Without a time limit: Stop wakes it.
    if (poll(polled.data(), polled.size(), may_accept ? -1 : kOutOfDescriptorsMs) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (polled[i + 2].revents == 0) continue;
        close(polled[i + 2].fd);
        duplicates_.erase(numbers[i]);
      }
    }
    may_accept = polled[1].revents == 0 || AcceptOne(accepted);
  }
}

bool Listener::AcceptOne(const Accepted& accepted) {
  int fd = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    close(fd);
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    // The number was in use before: gRPC closed its side, and the end of that connection was not seen here yet.
    auto [at, fresh] = duplicates_.emplace(fd, duplicate);
    if (!fresh) {
      close(at->second);
      at->second = duplicate;
    }
  }
  accepted(fd);
  return true;
}

}  // namespace headrace::local
