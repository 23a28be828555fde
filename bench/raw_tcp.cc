#include "bench/raw_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace headrace::bench {
namespace {

constexpr int64_t kCallBytes = 1 << 20;

arrow::Status Failed(const char* what) { return arrow::Status::IOError(what, ": ", std::strerror(errno)); }

/// Closes what it holds.
struct Socket {
  explicit Socket(int descriptor) : fd(descriptor) {}
  Socket(const Socket&) = delete;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  int release() { return std::exchange(fd, -1); }
  int fd;
};

/// Answers each count of bytes with so many, until the other side is gone.
void SendUntilClosed(int socket) {
  const std::vector<char> block(kCallBytes, 'x');
  int64_t left = 0;
  while (recv(socket, &left, sizeof left, MSG_WAITALL) == sizeof left) {
    while (left > 0) {
      const ssize_t sent = send(socket, block.data(), static_cast<size_t>(std::min(left, kCallBytes)), MSG_NOSIGNAL);
      if (sent <= 0) return;
      left -= sent;
    }
  }
}

}  // namespace

arrow::Result<TcpSender> TcpSender::Start() {
  const Socket listening(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listening.fd < 0 || bind(listening.fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listening.fd, 1) != 0 ||
      getsockname(listening.fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Failed("listening on loopback");
  }
  Socket ours(socket(AF_INET, SOCK_STREAM, 0));
  if (ours.fd < 0 || connect(ours.fd, reinterpret_cast<sockaddr*>(&address), length) != 0) return Failed("connecting over loopback");
  const Socket theirs(accept(listening.fd, nullptr, nullptr));
  if (theirs.fd < 0) return Failed("accepting over loopback");
  const pid_t process = fork();
  if (process < 0) return Failed("fork");
  if (process == 0) {
    close(ours.release());
    SendUntilClosed(theirs.fd);
    _exit(0);
  }
  return TcpSender(process, ours.release());
}

TcpSender::TcpSender(TcpSender&& other) noexcept : process_(std::exchange(other.process_, -1)), socket_(std::exchange(other.socket_, -1)) {}

TcpSender::~TcpSender() {
  if (socket_ < 0) return;
  close(socket_);
  waitpid(process_, nullptr, 0);
}

arrow::Status TcpSender::Receive(int64_t bytes) const {
  if (send(socket_, &bytes, sizeof bytes, MSG_NOSIGNAL) != sizeof bytes) return Failed("asking for bytes");
  std::vector<char> block(kCallBytes);
  while (bytes > 0) {
    const ssize_t got = recv(socket_, block.data(), static_cast<size_t>(std::min(bytes, kCallBytes)), 0);
    if (got <= 0) return Failed("receiving");
    bytes -= got;
  }
  return arrow::Status::OK();
}

}  // namespace headrace::bench
