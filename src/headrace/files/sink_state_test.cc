#include "headrace/files/internal/sink_state.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/files/internal/part_name.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

ManifestFile Sample() {
  std::string sha256;
  for (int i = 0; i < 32; ++i) sha256 += fmt::format("{:02x}", i);
  return {.name = "part-cafe0123-00002-0007.parquet", .rows = 5, .bytes = 300, .sha256 = sha256};
}

constexpr std::string_view kGoldenCommittable =
    "080112490a20706172742d63616665303132332d30303030322d303030372e7061727175657410ac021a20000102030405060708090a0b0c0d0e0f1011121314151617"
    "18191a"
    "1b1c1d1e1f2005";
constexpr std::string_view kGoldenWriterState =
    "080112490a20706172742d63616665303132332d30303030322d303030372e7061727175657410ac021a20000102030405060708090a0b0c0d0e0f1011121314151617"
    "18191a"
    "1b1c1d1e1f200512250a01621a20ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
constexpr std::string_view kGoldenJobState = "080110011a0830316430316430312206706172742d78220179";

TEST(SinkStateTest, GoldenBytes) {
  const ManifestFile b{.name = "b", .sha256 = std::string(64, 'f')};
  const FileJobState job{.directory_created = true, .replaced_run_id = "01d01d01", .replaced_files = {"part-x", "y"}};
  EXPECT_EQ(Hex(EncodeCommittable(Sample())), kGoldenCommittable);
  EXPECT_EQ(Hex(EncodeWriterState({Sample(), b})), kGoldenWriterState);
  EXPECT_EQ(Hex(EncodeJobState(job)), kGoldenJobState);
  EXPECT_EQ(DecodeCommittable(EncodeCommittable(Sample())).ValueOrDie(), Sample());
  EXPECT_THAT(DecodeWriterState(EncodeWriterState({Sample(), b})).ValueOrDie(), ElementsAre(Sample(), b));
  auto back = DecodeJobState(EncodeJobState(job)).ValueOrDie();
  EXPECT_TRUE(back.directory_created);
  EXPECT_EQ(back.replaced_run_id, "01d01d01");
  EXPECT_THAT(back.replaced_files, ElementsAre("part-x", "y"));
}

TEST(SinkStateTest, NamesNeedNotBeUtf8) {
  ManifestFile file = Sample();
  file.name = "caf\xe9.parquet";
  EXPECT_EQ(DecodeCommittable(EncodeCommittable(file)).ValueOrDie(), file);
}

TEST(SinkStateTest, DamagedStateIsDataLossAndAnotherVersionNamesBoth) {
  const std::string good = EncodeCommittable(Sample());
  for (size_t size = 0; size < good.size(); ++size) {
    auto decoded = DecodeCommittable(std::string_view(good).substr(0, size));
    ASSERT_FALSE(decoded.ok()) << size;
    EXPECT_EQ(CodeOf(decoded.status()), Code::kDataLoss) << size;
  }
  std::string other = good;
  other[1] = 2;
  auto decoded = DecodeCommittable(other);
  EXPECT_EQ(CodeOf(decoded.status()), Code::kUnimplemented);
  EXPECT_THAT(decoded.status().message(), HasSubstr("version 2, this program reads version 1"));
  ManifestFile elsewhere = Sample();
  elsewhere.name = "../x";
  EXPECT_EQ(CodeOf(DecodeCommittable(EncodeCommittable(elsewhere)).status()), Code::kDataLoss);
  ManifestFile negative = Sample();
  negative.bytes = -1;
  EXPECT_EQ(CodeOf(DecodeCommittable(EncodeCommittable(negative)).status()), Code::kDataLoss);
  EXPECT_EQ(CodeOf(DecodeJobState("").status()), Code::kDataLoss);
}

TEST(SinkStateTest, FilesOfSeveralStates) {
  ManifestFile a = Sample();
  a.name = "a";
  auto files = FilesOfStates({EncodeWriterState({Sample(), a}), EncodeWriterState({}), EncodeWriterState({a})});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(a, Sample()));
  ManifestFile other = a;
  other.rows++;
  EXPECT_EQ(CodeOf(FilesOfStates({EncodeWriterState({a}), EncodeWriterState({other})}).status()), Code::kDataLoss);
}

TEST(PartNameTest, Names) {
  EXPECT_EQ(PartName("cafe0123", 2, 7, 0, ".parquet"), "part-cafe0123-00002-0007.parquet");
  EXPECT_EQ(PartName("cafe0123", 2, 7, 1, ".csv.gz"), "part-cafe0123-00002-0007_0001.csv.gz");
  EXPECT_EQ(PartName("cafe0123", 123456, 98765, 0, ".parquet"), "part-cafe0123-123456-98765.parquet");
  EXPECT_EQ(TempPartName("part-a"), ".part-a.tmp");
  EXPECT_EQ(TempSingleName("flights.parquet", "cafe0123"), ".flights.parquet.cafe0123.tmp");
}

// Readers that go by name must meet the rows in the order in which a writer wrote them; the manifest keeps it beyond 9,999 too.
TEST(PartNameTest, NamesAndManifestKeepTheOrderOfWriting) {
  std::vector<std::string> written;
  for (uint64_t checkpoint : {2, 3, 9'999}) {
    for (uint64_t sequence : {0, 1, 2, 9'999}) written.push_back(PartName("cafe0123", 0, checkpoint, sequence, ".parquet"));
  }
  written.push_back(PartName("cafe0123", 1, 2, 0, ".parquet"));
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end(), PartOrder()));

  const std::vector<std::string> grown = {
      PartName("cafe0123", 0, 9'999, 9'999, ".parquet"), PartName("cafe0123", 0, 9'999, 10'000, ".parquet"),
      PartName("cafe0123", 0, 10'000, 0, ".parquet"),    PartName("cafe0123", 0, 10'000, 1, ".parquet"),
      PartName("cafe0123", 1, 2, 0, ".parquet"),         PartName("cafe0123", 99'999, 1, 0, ".parquet"),
      PartName("cafe0123", 100'000, 1, 0, ".parquet")};
  EXPECT_TRUE(std::is_sorted(grown.begin(), grown.end(), PartOrder()));
  std::vector<ManifestFile> files;
  for (const auto& name : grown) files.push_back({.name = name, .rows = 1, .bytes = 1, .sha256 = std::string(64, 'a')});
  std::reverse(files.begin(), files.end());
  auto named = FilesOfStates({EncodeWriterState(files)}).ValueOrDie();
  for (size_t i = 0; i < grown.size(); ++i) EXPECT_EQ(named[i].name, grown[i]);
  // An order must tell apart what are two names, and nothing else.
  EXPECT_NE(PartOrder()("a-1", "a-01"), PartOrder()("a-01", "a-1"));
  EXPECT_FALSE(PartOrder()("a-1", "a-1"));
  EXPECT_TRUE(PartOrder()("a", "a-1"));
}

TEST(PartNameTest, WhoseNames) {
  const std::pair<const char*, bool> cases[] = {
      {"part-cafe0123-00002-0007.parquet", true},
      {"part-cafe0123-00002-0007_0001.parquet", true},
      {"part-cafe01234-00002-0007.parquet", false},
      {"part-cafe012-00002-0007.parquet", false},
      {".part-cafe0123-00002-0007.parquet", false},
      {"part-cafe0123-00002-0007.parquet.tmp", false},
      {"part-cafe0123-00002-0007.parquet.bak.parquet", false},
      {"part-cafe0123-../../x-0007.parquet", false},
      {"part-cafe0123.parquet", false},
      {"part-.parquet", false},
      {"part-parquet", false},
      {"part-cafe0123-00002-0007.arrow", true},
      {"part-cafe0123-00002-0007.csv", true},
      {"part-cafe0123-00002-0007_0001.ndjson.zst", true},
      {"part-cafe0123-00002-0007.avro", true},
      {"part-cafe0123-00002-0007.json", false},
      {"part-cafe0123-00002-0007.csv.bak", false},
      {"part-cafe0123-00002-0007.parquet.gz", false},
      {"", false},
  };
  for (const auto& [name, ours] : cases) {
    EXPECT_EQ(IsPartNameOf(name, "cafe0123"), ours) << name;
    EXPECT_EQ(!PartNameOfTemp(TempPartName(name), "cafe0123").empty(), ours) << name;
  }
  EXPECT_TRUE(IsPartName("part-01d01d01-00000-0001.parquet"));
  EXPECT_FALSE(IsPartNameOf("part-01d01d01-00000-0001.parquet", "cafe0123"));
  EXPECT_EQ(PartNameOfTemp("part-cafe0123-00002-0007.parquet", "cafe0123"), "");
  EXPECT_EQ(PartNameOfTemp(".tmp", "cafe0123"), "");
}

}  // namespace
}  // namespace headrace
