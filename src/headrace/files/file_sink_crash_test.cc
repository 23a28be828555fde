// Every operation on the file system fails once, or is the last one of the process: what is on disk is then no result or a whole one, and
// going on from the last checkpoint, with other numbers of writers, gives exactly the right files.
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/files/faulty_file_system_testing.h"
#include "headrace/files/file_sink_testing.h"
#include "headrace/files/manifest.h"
#include "headrace/files/read_table.h"

namespace headrace {
namespace {

std::shared_ptr<const FileSink> SinkTo(const std::string& path, bool overwrite = false, int64_t max_file_bytes = 0,
                                       const std::string& format = "") {
  return FileSink::Make({.path = path, .overwrite = overwrite, .format = format, .max_file_bytes = max_file_bytes}).ValueOrDie();
}

std::vector<int64_t> SortedIds(const std::string& path) {
  auto table = ReadTable(LocalFileSystem(), path);
  EXPECT_TRUE(table.ok()) << table.status();
  std::vector<int64_t> ids;
  if (!table.ok()) return ids;
  for (const auto& chunk : (*table)->column(0)->chunks()) {
    const auto& values = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < values.length(); ++i) ids.push_back(values.Value(i));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<int64_t> Counted(int64_t first, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// Exactly the manifest and the files that it names, with the right rows.
void ExpectExactResult(const std::string& directory, int64_t rows, std::vector<std::string> strangers = {}) {
  auto manifest = ReadManifest(LocalFileSystem(), directory);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), directory, *manifest).ok());
  EXPECT_EQ(manifest->total_rows, rows);
  std::vector<std::string> names = std::move(strangers);
  names.emplace_back(kManifestName);
  for (const auto& file : manifest->files) names.push_back(file.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(NamesIn(directory), names);
  EXPECT_EQ(SortedIds(directory), Counted(0, rows));
}

// A reader at this moment sees a whole result, or is told that there is none.
void ExpectNothingHalfMade(const std::string& directory) {
  auto manifest = ReadManifest(LocalFileSystem(), directory);
  if (!manifest.ok()) {
    EXPECT_EQ(GetErrorInfo(manifest.status())->reason, "NOT_A_RESULT") << manifest.status();
    return;
  }
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), directory, *manifest).ok());
}

int64_t OperationsOf(const std::shared_ptr<const FileSink>& sink, int64_t total) {
  FaultyFileSystem files;
  EngineStore store;
  auto status = Engine{.sink = sink, .files = &files, .total = total}.Run(&store, 2);
  EXPECT_TRUE(status.ok()) << status;
  return files.operations();
}

constexpr const char* kFormats[] = {"parquet", "arrow", "arrows", "csv", "ndjson", "avro"};
/// Those whose single files say their types, at least to be guessed from a row.
constexpr const char* kSingleFormats[] = {"parquet", "arrow", "arrows", "csv", "avro"};

class FileSinkCrashTest : public testing::TestWithParam<std::tuple<Fault, const char*>> {
 protected:
  Fault fault() const { return std::get<0>(GetParam()); }
  std::shared_ptr<const FileSink> To(const std::string& path, bool overwrite = false) const {
    return SinkTo(path, overwrite, 0, std::get<1>(GetParam()));
  }
};
// The rules are the sink's, whatever the format: the two that differ most in when bytes go out see every fault, the others one.
INSTANTIATE_TEST_SUITE_P(Faults, FileSinkCrashTest,
                         testing::Combine(testing::Values(Fault::kError, Fault::kDeathBefore, Fault::kDeathAfter),
                                          testing::Values("parquet", "csv")),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<1>(info.param), static_cast<int>(std::get<0>(info.param)));
                         });
INSTANTIATE_TEST_SUITE_P(OtherFormats, FileSinkCrashTest,
                         testing::Combine(testing::Values(Fault::kDeathAfter), testing::Values("arrow", "arrows", "ndjson", "avro")),
                         [](const auto& info) { return std::string(std::get<1>(info.param)); });

TEST_P(FileSinkCrashTest, EveryOperationThenResumed) {
  for (int64_t total : {0, 60}) {
    TemporaryDirectory root;
    const int64_t operations = OperationsOf(To(root / "whole"), total);
    ExpectExactResult(root / "whole", total);
    ASSERT_GT(operations, total == 0 ? 5 : 60);
    for (int64_t n = 0; n < operations; ++n) {
      SCOPED_TRACE(fmt::format("{} rows, fault at operation {}", total, n));
      const std::string target = root / fmt::format("{}-{}", total, n);
      FaultyFileSystem files(n, fault());
      EngineStore store;
      auto status = Engine{.sink = To(target), .files = &files, .total = total}.Run(&store, 2);
      EXPECT_FALSE(status.ok() && files.dead());
      ExpectNothingHalfMade(target);
      if (store.finished) continue;
      FaultyFileSystem sound;
      auto resumed = Engine{.sink = To(target), .files = &sound, .total = total}.Run(&store, 1 + static_cast<int>(n % 3));
      ASSERT_TRUE(resumed.ok()) << resumed;
      ExpectExactResult(target, total);
    }
  }
}

TEST_P(FileSinkCrashTest, OverwritingKeepsTheOldResultUntilTheNewOneIsWhole) {
  TemporaryDirectory root;
  const auto make_old = [&](const std::string& target) {
    FaultyFileSystem sound;
    EngineStore store;
    ASSERT_TRUE((Engine{.sink = To(target), .files = &sound, .run_id = "01d01d01", .total = 7}.Run(&store, 2).ok()));
    std::filesystem::create_directory(target + "/kept");
    ASSERT_TRUE(WriteFileAtomically(&sound, target + "/part-of-mine.txt", "not ours", false).ok());
  };
  make_old(root / "whole");
  const int64_t operations = OperationsOf(To(root / "whole", true), 60);
  ExpectExactResult(root / "whole", 60, {"kept", "part-of-mine.txt"});
  for (int64_t n = 0; n < operations; ++n) {
    SCOPED_TRACE(fmt::format("fault at operation {}", n));
    const std::string target = root / fmt::format("{}", n);
    make_old(target);
    FaultyFileSystem files(n, fault());
    EngineStore store;
    (void)Engine{.sink = To(target, true), .files = &files}.Run(&store, 2);
    auto manifest = ReadManifest(LocalFileSystem(), target);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    auto whole = VerifyManifest(LocalFileSystem(), target, *manifest);
    ASSERT_TRUE(whole.ok()) << whole;
    EXPECT_EQ(SortedIds(target), Counted(0, manifest->run_id == "01d01d01" ? 7 : 60));
    if (store.finished) continue;
    FaultyFileSystem sound;
    auto resumed = Engine{.sink = To(target, true), .files = &sound}.Run(&store, 3);
    ASSERT_TRUE(resumed.ok()) << resumed;
    ExpectExactResult(target, 60, {"kept", "part-of-mine.txt"});
  }
}

TEST(FileSinkDeathsTest, SeveralDeathsInOneJob) {
  TemporaryDirectory root;
  std::mt19937_64 random(20250101);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    const std::string target = root / fmt::format("{}", round);
    auto sink = SinkTo(target, false, round % 2 == 0 ? 0 : 1, kFormats[static_cast<size_t>(round) % std::size(kFormats)]);
    EngineStore store;
    for (int run = 0; run < 6 && !store.finished; ++run) {
      FaultyFileSystem files(static_cast<int64_t>(random() % 60), static_cast<Fault>(random() % 3));
      (void)Engine{.sink = sink, .files = &files}.Run(&store, 1 + static_cast<int>(random() % 4));
      ExpectNothingHalfMade(target);
    }
    if (!store.finished) {
      FaultyFileSystem sound;
      auto last = Engine{.sink = sink, .files = &sound}.Run(&store, 2);
      ASSERT_TRUE(last.ok()) << last;
    }
    ExpectExactResult(target, 60);
  }
}

TEST(FileSinkDeathsTest, SingleFileIsTheOldOneOrTheWholeNewOne) {
  TemporaryDirectory root;
  for (bool overwrite : {false, true}) {
    for (int64_t total : {0, 60}) {
      for (int64_t n = 0;; ++n) {
        SCOPED_TRACE(fmt::format("overwrite {}, {} rows, fault at operation {}", overwrite, total, n));
        const std::string target =
            root / fmt::format("{}-{}-{}.{}", overwrite, total, n, kSingleFormats[static_cast<size_t>(n) % std::size(kSingleFormats)]);
        if (overwrite) {
          FaultyFileSystem sound;
          EngineStore old;
          ASSERT_TRUE(
              (Engine{.sink = SinkTo(target), .files = &sound, .run_id = "01d01d01", .total = 7, .interval = 1000}.Run(&old, 1).ok()));
        }
        FaultyFileSystem files(n, static_cast<Fault>(n % 3));
        EngineStore store;
        (void)Engine{.sink = SinkTo(target, overwrite), .files = &files, .total = total, .interval = 1000}.Run(&store, 1);
        if (overwrite || std::filesystem::exists(target)) {
          auto ids = SortedIds(target);
          EXPECT_TRUE(ids == Counted(0, total) || (overwrite && ids == Counted(0, 7))) << ids.size();
        }
        if (n >= files.operations()) {
          EXPECT_TRUE(store.finished);
          break;
        }
      }
    }
  }
}

TEST(FileSinkDeathsTest, DiskFullAtAnyByteLeavesNothingHalfMade) {
  TemporaryDirectory root;
  for (int64_t room = 0;; room += 97) {
    SCOPED_TRACE(fmt::format("{} bytes of room", room));
    const std::string target = root / fmt::format("{}", room);
    FaultyFileSystem files;
    files.set_room(room);
    EngineStore store;
    auto status = Engine{.sink = SinkTo(target), .files = &files, .total = 30}.Run(&store, 1);
    if (status.ok()) break;
    EXPECT_EQ(CodeOf(status), Code::kResourceExhausted) << status;
    EXPECT_EQ(GetErrorInfo(status)->reason, "DISK_FULL");
    ExpectNothingHalfMade(target);
    for (const auto& name : NamesIn(target)) EXPECT_NE(name[0], '.') << "a temporary file keeps a full disk full: " << name;
    FaultyFileSystem sound;
    auto resumed = Engine{.sink = SinkTo(target), .files = &sound, .total = 30}.Run(&store, 2);
    ASSERT_TRUE(resumed.ok()) << resumed;
    ExpectExactResult(target, 30);
  }
}

}  // namespace
}  // namespace headrace
