// Patterns as paths of a source: what they find, and what they must not pass over.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <arrow/table.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/files/file_sink_testing.h"
#include "headrace/files/file_source.h"
#include "headrace/runtime/read.h"

namespace headrace {
namespace {

using testing::HasSubstr;

void WriteText(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

arrow::Result<std::shared_ptr<arrow::Table>> ReadAll(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto source, FileSource::Make({.paths = {path}}));
  ARROW_ASSIGN_OR_RAISE(auto reader, Read(source, {.ordered = true}));
  return reader->ToTable();
}

// Passed over as by a shell is only what can have no files: a file or a link that leads nowhere in the place of a directory.
TEST(FilePatternTest, ItLeavesOutNothingThatCannotBeRead) {
  TemporaryDirectory root;
  for (const char* name : {"2023", "2024"}) {
    std::filesystem::create_directory(root / name);
    WriteText(root / fmt::format("{}/a.csv", name), "id\n1\n2\n");
  }
  WriteText(root / "2025", "a file");
  std::filesystem::create_symlink("nowhere", root / "2026");
  for (const char* pattern : {"*/*.csv", "20*/a.csv"}) {
    auto table = ReadAll(root / pattern);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ((*table)->num_rows(), 4);
  }
  // Links to themselves stand for whatever else cannot be read: they fail for every user.
  const std::string linked = root / "2024/b.csv";
  for (const char* target : {"nowhere", "b.csv"}) {
    std::filesystem::create_symlink(target, linked);
    for (const auto& path : {root / "20*/*.csv", root / "2024/b*", root / "2024"}) {
      auto table = ReadAll(path);
      ASSERT_FALSE(table.ok()) << path << " " << target;
      EXPECT_THAT(table.status().message(), HasSubstr("b.csv"));
    }
    EXPECT_EQ((*ReadAll(root / "*/a.csv"))->num_rows(), 4);
    std::filesystem::remove(linked);
  }
  std::filesystem::create_symlink("2027", root / "2027");
  for (const char* pattern : {"*/*.csv", "20*/a.csv"}) {
    auto table = ReadAll(root / pattern);
    ASSERT_FALSE(table.ok()) << "rows of the rest: " << (*table)->num_rows();
    EXPECT_THAT(table.status().message(), HasSubstr(root / "2027"));
  }
}

TEST(FilePatternTest, ItNeedsDescriptorsForItsDirectories) {
  TemporaryDirectory root;
  std::filesystem::create_directory(root / "a");
  WriteText(root / "a/a.csv", "id\n1\n");
  auto source = FileSource::Make({.paths = {root / "*/*.csv"}}).ValueOrDie();
  auto enumerator = source->CreateEnumerator({}).ValueOrDie();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = open("/dev/null", O_RDONLY);  // the lowest number that is free: with it as the limit none is
  ASSERT_GE(next, 0);
  close(next);
  rlimit small{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  auto status = enumerator->Start();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(GetErrorInfo(status)->reason, "TOO_MANY_FILES") << status;
}

}  // namespace
}  // namespace headrace
