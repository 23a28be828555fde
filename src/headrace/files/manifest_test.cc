#include "headrace/files/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/files/file_sink_testing.h"

namespace headrace {
namespace {

using testing::HasSubstr;

Manifest Sample() {
  return {.format = "parquet",
          .job_name = "copy flights",
          .run_id = "cafe0123",
          .files = {{.name = "part-cafe0123-00000-0001.parquet", .rows = 3, .bytes = 400, .sha256 = std::string(64, 'a')},
                    {.name = "part-cafe0123-00001-0001.parquet", .rows = 4, .bytes = 500, .sha256 = std::string(64, '0')}},
          .total_rows = 7,
          .total_bytes = 900,
          .schema = arrow::schema(
              {arrow::field("id", arrow::int64(), false), arrow::field("at", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"))}),
          .facts = {{"snapshot_time", "2025-01-01T00:00:00Z"}}};
}

// The text with "..." for the value of arrow_schema, whose bytes are Arrow's business.
std::string WithoutArrowSchema(std::string text) {
  constexpr std::string_view kKey = "\"arrow_schema\": \"";
  auto start = text.find(kKey);
  if (start == std::string::npos) return text;
  start += kKey.size();
  return text.replace(start, text.find('"', start) - start, "...");
}

// The Arrow schema's bytes are Arrow's own; everything else is ours.
TEST(ManifestTest, GoldenText) {
  auto text = ManifestToJson(Sample());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(WithoutArrowSchema(*text), R"({
  "format_version": 1,
  "format": "parquet",
  "job_name": "copy flights",
  "run_id": "cafe0123",
  "total_rows": 7,
  "total_bytes": 900,
  "files": [
    {
      "name": "part-cafe0123-00000-0001.parquet",
      "rows": 3,
      "bytes": 400,
      "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    },
    {
      "name": "part-cafe0123-00001-0001.parquet",
      "rows": 4,
      "bytes": 500,
      "sha256": "0000000000000000000000000000000000000000000000000000000000000000"
    }
  ],
  "schema": [
    {
      "name": "id",
      "type": "INTEGER",
      "mode": "REQUIRED"
    },
    {
      "name": "at",
      "type": "TIMESTAMP",
      "mode": "NULLABLE"
    }
  ],
  "arrow_schema": "...",
  "facts": {
    "snapshot_time": "2025-01-01T00:00:00Z"
  }
}
)");
}

TEST(ManifestTest, ThereAndBack) {
  auto manifest = ManifestFromJson(ManifestToJson(Sample()).ValueOrDie(), "m");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->files, Sample().files);
  EXPECT_EQ(manifest->job_name, "copy flights");
  EXPECT_EQ(manifest->total_rows, 7);
  EXPECT_EQ(manifest->total_bytes, 900);
  EXPECT_TRUE(manifest->schema->Equals(Sample().schema));
  EXPECT_EQ(manifest->facts, Sample().facts);
}

TEST(ManifestTest, WhateverIsChangedIsNoticed) {
  const auto good = nlohmann::json::parse(ManifestToJson(Sample()).ValueOrDie());
  using Pointer = nlohmann::json::json_pointer;
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"/files/0/name", "../passwd"},
      {"/files/0/name", ""},
      {"/files/0/name", ".."},
      {"/files/0/name", std::string("a\0b", 3)},
      {"/files/0/name", "part-cafe0123-00001-0001.parquet"},
      {"/files/0/rows", -3},
      {"/files/0/rows", 4},
      {"/files/0/rows", "3"},
      {"/files/0/bytes", 1.5},
      {"/files/0/bytes", 18446744073709551615u},
      {"/files/0/sha256", "aa"},
      {"/files/0/sha256", std::string(64, 'G')},
      {"/files/1", 7},
      {"/files", nullptr},
      {"/total_rows", 8},
      {"/total_bytes", 901},
      {"/run_id", 1},
      {"/facts", nlohmann::json::array()},
      {"/facts/x", 1},
      {"/arrow_schema", "!!!"},
      {"/arrow_schema", "AAAA"},
  };
  for (const auto& [where, value] : changes) {
    auto changed = good;
    changed[Pointer(where)] = value;
    auto manifest = ManifestFromJson(changed.dump(), "the/path");
    ASSERT_FALSE(manifest.ok()) << where << " " << value;
    EXPECT_EQ(CodeOf(manifest.status()), Code::kDataLoss) << where;
    EXPECT_THAT(manifest.status().message(), HasSubstr("the/path"));
  }
  for (const auto& [key, value] : good.items()) {
    if (key == "schema") continue;  // for people; the Arrow schema says the same
    auto changed = good;
    changed.erase(key);
    EXPECT_FALSE(ManifestFromJson(changed.dump(), "m").ok()) << key;
  }
  for (const char* text : {"", "[", "[]", "7", "{}"}) EXPECT_EQ(CodeOf(ManifestFromJson(text, "m").status()), Code::kDataLoss) << text;
}

TEST(ManifestTest, AnotherVersionNamesBoth) {
  auto json = nlohmann::json::parse(ManifestToJson(Sample()).ValueOrDie());
  json["format_version"] = 2;
  auto manifest = ManifestFromJson(json.dump(), "m");
  EXPECT_EQ(CodeOf(manifest.status()), Code::kUnimplemented);
  EXPECT_THAT(manifest.status().message(), HasSubstr("version 2, this program reads version 1"));
}

TEST(ManifestTest, ADirectoryWithoutOneIsNoResult) {
  TemporaryDirectory root;
  auto manifest = ReadManifest(LocalFileSystem(), root.path());
  ASSERT_FALSE(manifest.ok());
  EXPECT_EQ(CodeOf(manifest.status()), Code::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(manifest.status())->reason, "NOT_A_RESULT");
}

TEST(ManifestTest, VerifyReadsEveryFile) {
  TemporaryDirectory root;
  FileSystem* files = LocalFileSystem();
  ASSERT_TRUE(WriteFileAtomically(files, root / "f", "abc", false).ok());
  // SHA-256 of "abc": FIPS 180-2, appendix B.1.
  Manifest manifest{.files = {{.name = "f", .bytes = 3, .sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}};
  EXPECT_TRUE(VerifyManifest(files, root.path(), manifest).ok());
  ASSERT_TRUE(WriteFileAtomically(files, root / "f", "abd", true).ok());
  EXPECT_THAT(VerifyManifest(files, root.path(), manifest).message(), HasSubstr("SHA-256"));
  ASSERT_TRUE(WriteFileAtomically(files, root / "f", "abcd", true).ok());
  EXPECT_THAT(VerifyManifest(files, root.path(), manifest).message(), HasSubstr("4 bytes instead of 3"));
  ASSERT_TRUE(files->Remove(root / "f").ok());
  auto missing = VerifyManifest(files, root.path(), manifest);
  EXPECT_THAT(missing.message(), HasSubstr("missing"));
  EXPECT_EQ(CodeOf(missing), Code::kDataLoss);
}

}  // namespace
}  // namespace headrace
