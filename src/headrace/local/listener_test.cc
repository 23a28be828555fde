#include "headrace/local/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <ctime>
#include <vector>

#include <gtest/gtest.h>

namespace headrace::local {
namespace {

int ConnectTo(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Without descriptors the connection waits, the listener does not spin, and goes on once there are some.
TEST(ListenerTest, WaitsForDescriptors) {
  Listener listener;
  auto address = listener.Bind("127.0.0.1", 0);
  ASSERT_TRUE(address.ok()) << address.status();
  std::mutex mutex;
  std::condition_variable accepted;
  int count = 0;
  ASSERT_TRUE(listener
                  .Start([&](int fd) {
                    close(fd);
                    std::lock_guard lock(mutex);
                    ++count;
                    accepted.notify_all();
                  })
                  .ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  int client = ConnectTo(*address);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(accepted.wait_for(lock, std::chrono::seconds(10), [&] { return count == 1; }));
  }
  // Every number below the limit is taken: the next accept fails.
  int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::vector<int> taken;
  rlimit tight = before;
  tight.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) taken.push_back(fd);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address->substr(address->find(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  double cpu = CpuSeconds();
  EXPECT_EQ(connect(waiting, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  {
    std::unique_lock lock(mutex);
    EXPECT_FALSE(accepted.wait_for(lock, std::chrono::milliseconds(500), [&] { return count == 2; }));
  }
  EXPECT_LT(CpuSeconds() - cpu, 0.25);
  for (int fd : taken) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(accepted.wait_for(lock, std::chrono::seconds(10), [&] { return count == 2; }));
  }
  close(client);
  close(waiting);
  listener.Stop();
}

}  // namespace
}  // namespace headrace::local
