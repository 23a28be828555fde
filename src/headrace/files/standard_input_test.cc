#include <unistd.h>

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "headrace/files/file_source.h"

namespace headrace {
namespace {

// Nothing is ever written into the pipe, as by somebody who has not typed yet: only Cancel can end the wait.
TEST(StandardInput, CancelEndsTheWaitForTheFirstBytes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto source = FileSource::Make({.paths = {"-"}, .from_format = "arrows", .input_descriptor = ends[0]});
  ASSERT_TRUE(source.ok()) << source.status();
  auto enumerator = (*source)->CreateEnumerator({});
  ASSERT_TRUE(enumerator.ok()) << enumerator.status();
  auto started = std::async(std::launch::async, [&] { return (*enumerator)->Start(); });
  (*enumerator)->Cancel();
  ASSERT_EQ(started.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_FALSE(started.get().ok());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace headrace
