#include "headrace/files/file_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include <arrow/json/from_string.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include "headrace/files/faulty_file_system_testing.h"
#include "headrace/files/file_sink_testing.h"
#include "headrace/files/internal/output_file.h"
#include "headrace/files/internal/sink_state.h"
#include "headrace/files/manifest.h"
#include "headrace/files/read_table.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SinkContext Context(FileSystem* files = LocalFileSystem()) {
  SinkContext context;
  context.job_name = "test";
  context.files = files;
  context.run_id = "cafe0123";
  return context;
}

std::shared_ptr<const FileSink> MakeSink(FileSinkOptions options) { return FileSink::Make(std::move(options)).ValueOrDie(); }

TEST(FileSinkOptionsTest, FormFollowsFromThePath) {
  const std::pair<const char*, std::optional<bool>> cases[] = {{"out", false},
                                                               {"out/", false},
                                                               {"./a.b/out", false},
                                                               {"out.parquet/", false},
                                                               {"/", false},
                                                               {".", false},
                                                               {"..", false},
                                                               {"dir/..", false},
                                                               {".hidden", false},
                                                               {"out.parquet", true},
                                                               {"a/out.parquet", true},
                                                               {".x.parquet", true},
                                                               {"out.arrow", true},
                                                               {"a.b/out.feather", true},
                                                               {"out.arrows", true},
                                                               {"out.csv", true},
                                                               {"out.csv.gz", true},
                                                               {"out.json.zst", true},
                                                               {"out.avro", true},
                                                               {"out.txt", std::nullopt},
                                                               {"out.v2", std::nullopt},
                                                               {"", std::nullopt}};
  for (const auto& [path, single] : cases) {
    auto sink = FileSink::Make({.path = path});
    ASSERT_EQ(sink.ok(), single.has_value()) << path;
    if (single) {
      EXPECT_EQ((*sink)->single_file(), *single) << path;
      EXPECT_EQ((*sink)->max_writers(), *single ? 1 : 0);
    } else {
      EXPECT_EQ(GetErrorInfo(sink.status())->resource, "path");
    }
  }
}

TEST(FileSinkOptionsTest, WrongOptionsAreNamed) {
  const std::pair<FileSinkOptions, const char*> cases[] = {
      {{.path = "d/", .parquet_compression = "lzo"}, "parquet_compression"},
      {{.path = "d/", .parquet_compression = "ZSTD"}, "parquet_compression"},
      {{.path = "d/", .format = "orc"}, "format"},
      {{.path = "f.parquet", .format = "arrow"}, "format"},
      {{.path = "-"}, "format"},
      {{.path = "-", .overwrite = true, .format = "arrows"}, "overwrite"},
      {{.path = "-", .format = "arrows", .max_file_bytes = 1}, "max_file_bytes"},
      {{.path = "f.arrow", .parquet_compression = "zstd"}, "parquet_compression"},
      {{.path = "d/", .format = "arrows", .parquet_row_group_rows = 5}, "parquet_row_group_rows"},
      {{.path = "d/", .format = "arrow", .parquet_row_group_bytes = 5}, "parquet_row_group_bytes"},
      {{.path = "d/", .format = "arrow", .arrow_compression = "snappy"}, "arrow_compression"},
      {{.path = "d/", .arrow_compression = "lz4"}, "arrow_compression"},
      {{.path = "d/", .format = "csv", .csv_compression = "lz4"}, "csv_compression"},
      {{.path = "f.csv", .csv_compression = "gzip"}, "csv_compression"},
      {{.path = "f.csv.gz", .csv_compression = "zstd"}, "csv_compression"},
      {{.path = "f.csv.gz", .csv_compression = "none"}, "csv_compression"},
      {{.path = "d/", .csv_compression = "gzip"}, "csv_compression"},
      {{.path = "f.csv", .ndjson_compression = "none"}, "ndjson_compression"},
      {{.path = "f.jsonl", .ndjson_compression = "gzip"}, "ndjson_compression"},
      {{.path = "f.ndjson", .csv_null_value = "x"}, "csv_null_value"},
      {{.path = "f.csv", .csv_null_value = "a,b"}, "csv_null_value"},
      {{.path = "f.csv", .csv_nested = "text"}, "csv_nested"},
      {{.path = "f.avro", .csv_nested = "json"}, "csv_nested"},
      {{.path = "f.csv", .avro_compression = "deflate"}, "avro_compression"},
      {{.path = "f.avro", .avro_compression = "lz4"}, "avro_compression"},
      {{.path = "f.parquet.gz"}, "path"},
      {{.path = "d/", .parquet_row_group_rows = 0}, "parquet_row_group_rows"},
      {{.path = "d/", .parquet_row_group_bytes = 0}, "parquet_row_group_bytes"},
      {{.path = "d/", .max_file_bytes = -1}, "max_file_bytes"},
      {{.path = "f.parquet", .max_file_bytes = 1}, "max_file_bytes"},
  };
  for (const auto& [options, name] : cases) {
    auto sink = FileSink::Make(options);
    ASSERT_FALSE(sink.ok()) << name;
    EXPECT_EQ(GetErrorInfo(sink.status())->resource, name);
    EXPECT_EQ(GetErrorInfo(sink.status())->reason, "INVALID_OPTION");
  }
}

TEST(FileSinkOptionsTest, ASingleFileTakesNoCheckpoints) {
  EXPECT_TRUE(MakeSink({.path = "flights/"})->SupportsCheckpoints().ok());
  auto status = MakeSink({.path = "x/flights.parquet"})->SupportsCheckpoints();
  EXPECT_EQ(CodeOf(status), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("x/flights/"));
}

TEST(FileSinkOptionsTest, LineageIsTheAbsolutePath) {
  auto lineage = MakeSink({.path = "/a/./b/../c/"})->lineage();
  ASSERT_EQ(lineage.datasets.size(), 1u);
  EXPECT_EQ(lineage.datasets[0].namespace_name, "file");
  EXPECT_EQ(lineage.datasets[0].name, "/a/c");
  EXPECT_EQ(MakeSink({.path = "x"})->lineage().datasets[0].name, (std::filesystem::current_path() / "x").string());
}

// They are persisted: a resume in another working directory reports them.
TEST(FileSinkOptionsTest, FactsSayWhereTheResultIsFromAnywhere) {
  const auto here = std::filesystem::current_path();
  auto facts = MakeSink({.path = "x/"})->facts("");
  EXPECT_EQ(facts["output"], (here / "x/").string());
  EXPECT_EQ(facts["manifest"], (here / "x/_headrace_manifest.json").string());
  EXPECT_EQ(MakeSink({.path = "./x/./y/"})->facts("")["output"], (here / "x/y/").string());
  EXPECT_EQ(MakeSink({.path = "x.parquet"})->facts("")["output"], (here / "x.parquet").string());
  EXPECT_EQ(MakeSink({.path = "/a/b/../x.parquet"})->facts("")["output"], "/a/b/../x.parquet");
}

struct TargetCase {
  const char* path;
  bool overwrite;
  Code code;
  const char* text;
};

TEST(FileSinkTargetTest, CheckedBeforeAnyWork) {
  TemporaryDirectory root;
  FaultyFileSystem sound;
  for (const char* name : {"result/", "file.parquet"}) {
    EngineStore store;
    Engine engine{.sink = MakeSink({.path = root / name}), .files = &sound, .run_id = "01d01d01", .interval = 1000};
    ASSERT_TRUE(engine.Run(&store, 1).ok());
  }
  std::filesystem::create_directory(root / "empty");
  std::filesystem::create_directory(root / "foreign");
  std::filesystem::create_directory(root / "dir.parquet");
  std::filesystem::create_directory(root / "damaged");
  ASSERT_TRUE(WriteFileAtomically(&sound, root / "foreign/letter.txt", "x", false).ok());
  ASSERT_TRUE(WriteFileAtomically(&sound, root / "damaged/_headrace_manifest.json", "{", false).ok());
  const TargetCase cases[] = {
      {"new/", false, Code::kOk, ""},
      {"new.parquet", false, Code::kOk, ""},
      {"new/", true, Code::kOk, ""},
      {"empty/", false, Code::kOk, ""},
      {"result/", false, Code::kAlreadyExists, "--overwrite"},
      {"result/", true, Code::kOk, ""},
      {"file.parquet", false, Code::kAlreadyExists, "--overwrite"},
      {"file.parquet", true, Code::kOk, ""},
      {"foreign/", false, Code::kFailedPrecondition, "letter.txt"},
      {"foreign/", true, Code::kFailedPrecondition, "nothing in it is overwritten"},
      {"damaged/", true, Code::kDataLoss, "_headrace_manifest.json"},
      {"dir.parquet", true, Code::kFailedPrecondition, "is a directory"},
      {"file.parquet/", true, Code::kFailedPrecondition, "is a file"},
      {"none/x/", false, Code::kNotFound, "no such directory"},
      {"none/x.parquet", false, Code::kNotFound, "no such directory"},
      {"file.parquet/x.parquet", false, Code::kNotFound, "no directory"},
  };
  const auto before = NamesIn(root.path());
  for (const auto& item : cases) {
    SCOPED_TRACE(fmt::format("{} overwrite {}", item.path, item.overwrite));
    auto sink = MakeSink({.path = root / item.path, .overwrite = item.overwrite});
    auto status = sink->Check(Context());
    EXPECT_EQ(CodeOf(status), item.code) << status;
    EXPECT_THAT(status.message(), HasSubstr(item.text));
    EXPECT_EQ(NamesIn(root.path()), before);
    if (item.code != Code::kOk) {
      EXPECT_EQ(CodeOf(sink->Prepare(Context(), IdSchema()).status()), item.code);
    }
  }
}

// They would spoil the directory for the corrected command, and be met by whoever reads all files of it.
TEST(FileSinkTargetTest, CheckpointsInTheTargetAreRefused) {
  TemporaryDirectory root;
  std::filesystem::create_directory(root / "real");
  std::filesystem::create_symlink(root / "real", root / "link");
  const std::tuple<const char*, const char*, bool> cases[] = {
      {"out/", "out", false},
      {"out/", "out/checkpoints/a", false},
      {"out", "out/.job", false},
      {"out/", "x/../out/a", false},
      {"real/", "link/a", false},
      {"link/", "real", false},
      {"out/", "out.job", true},
      {"out/", "outer/a", true},
      {"out/in/", "out", true},
      {"real/", "link.job", true},
      {"out.parquet", "out.parquet.job", true},
  };
  for (const auto& [target, checkpoint, fine] : cases) {
    SCOPED_TRACE(fmt::format("{} in {}", checkpoint, target));
    std::filesystem::create_directory(root / "out");
    auto context = Context();
    context.checkpoint_directory = root / checkpoint;
    auto status = MakeSink({.path = root / target})->Check(context);
    EXPECT_EQ(status.ok(), fine) << status;
    if (fine) continue;
    EXPECT_EQ(GetErrorInfo(status)->reason, "INVALID_OPTION");
    EXPECT_EQ(GetErrorInfo(status)->resource, "checkpoint");
  }
}

// Found out before a row is read, not when the file is to get its name.
TEST(FileSinkTargetTest, NamesThatCannotBeUsed) {
  TemporaryDirectory root;
  std::filesystem::create_symlink("nowhere", root / "dangling.parquet");
  EXPECT_EQ(CodeOf(MakeSink({.path = root / "dangling.parquet"})->Check(Context())), Code::kAlreadyExists);
  EXPECT_TRUE(MakeSink({.path = root / "dangling.parquet", .overwrite = true})->Check(Context()).ok());
  std::filesystem::create_symlink("nowhere", root / "dangling");
  EXPECT_EQ(CodeOf(MakeSink({.path = root / "dangling/"})->Check(Context())), Code::kFailedPrecondition);
  const std::string longest(255 - std::string_view(".parquet").size(), 'n');  // NAME_MAX; the temporary name is longer
  EXPECT_FALSE(MakeSink({.path = root / (longest + ".parquet")})->Check(Context()).ok());
  EXPECT_EQ(NamesIn(root.path()).size(), 2u);
}

TEST(FileSinkTargetTest, ADirectoryThatCannotBeWritten) {
  TemporaryDirectory root;
  FaultyFileSystem files(0);
  auto status = MakeSink({.path = root / "new/"})->Check(Context(&files));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("nothing can be written to the directory {}", root.path())));
}

TEST(FileSinkTargetTest, PrepareTwiceAndFinishTwice) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root / "out/"});
  ASSERT_TRUE(sink->Prepare(Context(), IdSchema()).ok());
  auto state = sink->Prepare(Context(), IdSchema());
  ASSERT_TRUE(state.ok()) << state.status();
  Report report;
  report.facts = {{"session", "s1"}};
  for (int i = 0; i < 2; ++i) {
    auto finished = sink->Finish(Context(), *state, IdSchema(), {}, report);
    ASSERT_TRUE(finished.ok()) << finished;
  }
  // An empty table has all its columns, as files and as a manifest.
  EXPECT_THAT(NamesIn(root / "out"), ElementsAre(std::string(kManifestName), "part-cafe0123-00000-0000.parquet"));
  auto manifest = ReadManifest(LocalFileSystem(), root / "out");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->facts, report.facts);
  EXPECT_EQ(manifest->job_name, "test");
  auto table = ReadTable(LocalFileSystem(), root / "out");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->num_rows(), 0);
  EXPECT_EQ((*table)->schema()->ToString(), "id: int64 not null");
  // A job restored after its manifest was written keeps what the manifest names.
  ASSERT_TRUE(sink->RemoveOrphans(Context(), *state, {}).ok());
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), root / "out", *manifest).ok());
}

TEST(FileSinkTargetTest, AnotherJobsResultIsNotReplaced) {
  TemporaryDirectory root;
  FaultyFileSystem sound;
  auto sink = MakeSink({.path = root / "out/"});
  auto state = sink->Prepare(Context(), IdSchema());
  ASSERT_TRUE(state.ok());
  EngineStore store;
  ASSERT_TRUE((Engine{.sink = sink, .files = &sound, .run_id = "01d01d01"}.Run(&store, 1).ok()));
  auto finished = sink->Finish(Context(), *state, IdSchema(), {}, {});
  EXPECT_EQ(CodeOf(finished), Code::kAlreadyExists) << finished;
  ASSERT_TRUE(sink->Abandon(Context(), *state).ok());
  auto manifest = ReadManifest(LocalFileSystem(), root / "out");
  ASSERT_TRUE(manifest.ok());
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), root / "out", *manifest).ok());
  EXPECT_EQ(NamesIn(root / "out").size(), manifest->files.size() + 1);
}

TEST(FileSinkTargetTest, AManifestCannotMakeUsDeleteOtherFiles) {
  TemporaryDirectory root;
  std::filesystem::create_directory(root / "out");
  ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), root / "out/precious", "x", false).ok());
  Manifest forged{.format = "parquet",
                  .run_id = "01d01d01",
                  .files = {{.name = "precious", .bytes = 1, .sha256 = std::string(64, '0')}},
                  .total_bytes = 1,
                  .schema = IdSchema()};
  ASSERT_TRUE(
      WriteFileAtomically(LocalFileSystem(), root / "out/_headrace_manifest.json", ManifestToJson(forged).ValueOrDie(), false).ok());
  FaultyFileSystem sound;
  EngineStore store;
  ASSERT_TRUE((Engine{.sink = MakeSink({.path = root / "out/", .overwrite = true}), .files = &sound}.Run(&store, 1).ok()));
  EXPECT_TRUE(std::filesystem::exists(root / "out/precious"));
}

// The target was taken after the check: the error is that of Prepare alone.
TEST(FileSinkTargetTest, AbandonAfterAPrepareThatFailed) {
  TemporaryDirectory root;
  ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), root / "mine", "x", false).ok());
  auto sink = MakeSink({.path = root.path() + "/"});
  ASSERT_FALSE(sink->Prepare(Context(), IdSchema()).ok());
  EXPECT_TRUE(sink->Abandon(Context(), "").ok());
  EXPECT_THAT(NamesIn(root.path()), ElementsAre("mine"));
}

TEST(FileSinkTargetTest, AbandonLeavesNothingOfTheJobAndAllOfOthers) {
  for (bool existed : {false, true}) {
    TemporaryDirectory root;
    if (existed) std::filesystem::create_directory(root / "out");
    auto sink = MakeSink({.path = root / "out/"});
    auto state = sink->Prepare(Context(), IdSchema());
    ASSERT_TRUE(state.ok());
    auto writer = sink->CreateWriter(Context(), *state, IdSchema()).ValueOrDie();
    ASSERT_TRUE(writer->Write(Ids(0, 10)).ok());
    auto committables = writer->PrepareCommit().ValueOrDie();
    auto results = sink->CreateCommitter(Context(), *state).ValueOrDie()->Commit(committables);
    EXPECT_EQ(results.at(0).outcome, CommitOutcome::kCommitted);
    ASSERT_TRUE(writer->Write(Ids(10, 10)).ok());
    EXPECT_EQ(NamesIn(root / "out").size(), 2u);
    ASSERT_TRUE(sink->Abandon(Context(), *state).ok());
    EXPECT_EQ(std::filesystem::exists(root / "out"), existed);
    EXPECT_THAT(NamesIn(root / "out"), IsEmpty());
  }
}

TEST(FileSinkTargetTest, OrphansAreThisJobsFilesThatNoCheckpointNames) {
  TemporaryDirectory root;
  for (const char* name : {"part-cafe0123-00000-0001.parquet", "part-cafe0123-00000-0002.parquet", ".part-cafe0123-00001-0002.parquet.tmp",
                           "part-01d01d01-00000-0002.parquet", ".part-01d01d01-00000-0002.parquet.tmp", "letter.txt"}) {
    ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), root / name, "abc", false).ok());
  }
  const ManifestFile named{.name = "part-cafe0123-00000-0001.parquet", .rows = 1, .bytes = 3, .sha256 = std::string(64, '0')};
  auto sink = MakeSink({.path = root.path() + "/"});
  ASSERT_TRUE(sink->RemoveOrphans(Context(), EncodeJobState({}), {EncodeWriterState({named})}).ok());
  EXPECT_THAT(NamesIn(root.path()), ElementsAre(".part-01d01d01-00000-0002.parquet.tmp", "letter.txt", "part-01d01d01-00000-0002.parquet",
                                                "part-cafe0123-00000-0001.parquet"));
}

// What Commit answers for each state of the two names.
TEST(FileCommitterTest, EachStateOfTheFiles) {
  enum Content { kNone, kRight, kOther };
  struct Case {
    Content temp;
    Content final_file;
    CommitOutcome outcome;
  };
  const Case cases[] = {
      {kRight, kNone, CommitOutcome::kCommitted}, {kNone, kRight, CommitOutcome::kAlready},  {kNone, kNone, CommitOutcome::kFailed},
      {kNone, kOther, CommitOutcome::kFailed},    {kRight, kRight, CommitOutcome::kAlready}, {kRight, kOther, CommitOutcome::kFailed},
      {kOther, kNone, CommitOutcome::kFailed},
  };
  const std::string name = "part-cafe0123-00000-0001.parquet";
  for (const auto& item : cases) {
    SCOPED_TRACE(fmt::format("temp {} final {}", static_cast<int>(item.temp), static_cast<int>(item.final_file)));
    TemporaryDirectory root;
    auto put = [&](Content content, const std::string& path) {
      if (content == kNone) return;
      // The same size for the final file: only the hash tells; another size for the temporary one.
      std::string text = content == kRight ? "abc" : (path.ends_with(".tmp") ? "ab" : "abd");
      ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), path, text, false).ok());
    };
    put(item.temp, root / ("." + name + ".tmp"));
    put(item.final_file, root / name);
    const ManifestFile file{
        .name = name, .rows = 1, .bytes = 3, .sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"};
    auto committer = MakeSink({.path = root.path() + "/"})->CreateCommitter(Context(), "").ValueOrDie();
    auto results = committer->Commit({EncodeCommittable(file)});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome, item.outcome) << results[0].error;
    EXPECT_EQ(results[0].error.ok(), item.outcome != CommitOutcome::kFailed);
    if (item.outcome == CommitOutcome::kFailed) continue;
    EXPECT_THAT(NamesIn(root.path()), ElementsAre(name));
    EXPECT_EQ(committer->Commit({EncodeCommittable(file)})[0].outcome, CommitOutcome::kAlready);
  }
}

TEST(FileCommitterTest, OtherJobsFilesAndDamagedBytesFailAlone) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root.path() + "/"});
  auto writer = sink->CreateWriter(Context(), "", IdSchema()).ValueOrDie();
  ASSERT_TRUE(writer->Write(Ids(0, 1)).ok());
  auto good = writer->PrepareCommit().ValueOrDie().at(0);
  const ManifestFile other{.name = "part-01d01d01-00000-0001.parquet", .bytes = 3, .sha256 = std::string(64, '0')};
  auto results = sink->CreateCommitter(Context(), "").ValueOrDie()->Commit({"rubbish", EncodeCommittable(other), good});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].outcome, CommitOutcome::kFailed);
  EXPECT_EQ(results[1].outcome, CommitOutcome::kFailed);
  EXPECT_EQ(results[2].outcome, CommitOutcome::kCommitted);
}

TEST(FileWriterTest, NamesNeverRepeatAndCountsAreKept) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root.path() + "/", .max_file_bytes = 1});
  auto context = Context();
  context.writer_index = 3;
  context.first_checkpoint = 7;
  auto writer = sink->CreateWriter(context, "", IdSchema()).ValueOrDie();
  ASSERT_TRUE(writer->Write(Ids(0, 0)).ok());
  EXPECT_THAT(writer->PrepareCommit().ValueOrDie(), IsEmpty());  // no rows, no file
  EXPECT_THAT(NamesIn(root.path()), IsEmpty());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer->Write(Ids(int64_t{5} * i, 5)).ok());
  EXPECT_EQ(writer->PrepareCommit().ValueOrDie().size(), 2u);
  ASSERT_TRUE(writer->Snapshot(7).ok());
  ASSERT_TRUE(writer->Write(Ids(10, 5)).ok());
  EXPECT_EQ(writer->PrepareCommit().ValueOrDie().size(), 1u);
  auto files = DecodeWriterState(writer->Snapshot(8).ValueOrDie()).ValueOrDie();
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const auto& file : files) names.push_back(file.name);
  EXPECT_THAT(names,
              ElementsAre("part-cafe0123-00003-0007.parquet", "part-cafe0123-00003-0007_0001.parquet", "part-cafe0123-00003-0008.parquet"));
  EXPECT_EQ(writer->written(), 15);
  int64_t bytes = 0;
  for (const auto& file : files) bytes += file.bytes;
  EXPECT_EQ(writer->bytes_written(), bytes);
}

/// What a sink wrote into a descriptor, as a file of the name; `rows` batches of five.
std::string WriteToOutput(const TemporaryDirectory& root, const std::string& name, FileSinkOptions options, int batches) {
  const int descriptor = open((root / name).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  options.path = "-";
  options.output_descriptor = descriptor;
  EngineStore store;
  Engine engine{.sink = MakeSink(options), .total = int64_t{5} * batches, .interval = 1000};
  auto status = engine.Run(&store, 1);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(fcntl(descriptor, F_GETFD), 0) << "standard output stays open";
  close(descriptor);
  return root / name;
}

TEST(StandardOutputTest, HoldsTheDataAndNothingElse) {
  for (const char* format : {"parquet", "arrow", "arrows", "csv", "avro"}) {
    for (int batches : {0, 1, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", format, batches));
      TemporaryDirectory root;
      auto table = ReadTable(LocalFileSystem(), WriteToOutput(root, fmt::format("out.{}", format), {.format = format}, batches));
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ((*table)->num_rows(), batches * 5);
      if (batches > 0) {
        EXPECT_EQ((*table)->schema()->field(0)->ToString().substr(0, 9), "id: int64");
      }
      EXPECT_EQ((*table)->field(0)->name(), "id");
      EXPECT_EQ(NamesIn(root.path()).size(), 1u);
    }
  }
}

TEST(StandardOutputTest, TakesNoCheckpointsAndOneWriter) {
  auto sink = MakeSink({.path = "-", .format = "arrows"});
  EXPECT_EQ(sink->max_writers(), 1);
  EXPECT_THAT(sink->SupportsCheckpoints().message(), HasSubstr("directory"));
  EXPECT_EQ(sink->facts("").at("output"), "standard output");
  EXPECT_EQ(sink->lineage().datasets.at(0).name, "-");
}

TEST(StandardOutputTest, AReaderThatWentAwayIsAnError) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  auto before = signal(SIGPIPE, SIG_IGN);
  EngineStore store;
  auto status = Engine{.sink = MakeSink({.path = "-", .format = "arrows", .output_descriptor = ends[1]}), .interval = 1000}.Run(&store, 1);
  signal(SIGPIPE, before);
  close(ends[1]);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(GetErrorInfo(status)->reason, "OUTPUT_CLOSED");
}

TEST(ArrowFileTest, CompressionsAndManifest) {
  TemporaryDirectory root;
  for (const char* codec : {"none", "lz4", "zstd"}) {
    for (const char* format : {"arrow", "arrows"}) {
      const std::string target = root / fmt::format("{}-{}", format, codec);
      EngineStore store;
      Engine engine{
          .sink = MakeSink({.path = target, .format = format, .arrow_compression = codec}), .total = 100'000, .batch_rows = 50'000};
      ASSERT_TRUE(engine.Run(&store, 1).ok());
      auto manifest = ReadManifest(LocalFileSystem(), target).ValueOrDie();
      EXPECT_EQ(manifest.format, format);
      EXPECT_EQ(manifest.files.at(0).name, fmt::format("part-cafe0123-00000-0001.{}", format));
      EXPECT_EQ(manifest.total_bytes > 800'000, codec == std::string_view("none")) << manifest.total_bytes;
      EXPECT_EQ(ReadTable(LocalFileSystem(), target).ValueOrDie()->num_rows(), 100'000);
    }
  }
}

TEST(FileWriterTest, SchemasThatAFileCannotHold) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root / "out/"});
  auto none = sink->Prepare(Context(), arrow::schema({}));
  EXPECT_EQ(CodeOf(none.status()), Code::kUnimplemented);
  EXPECT_THAT(none.status().message(), HasSubstr("without columns"));
  auto duration = sink->Prepare(Context(), arrow::schema({arrow::field("i", arrow::duration(arrow::TimeUnit::SECOND))}));
  EXPECT_EQ(GetErrorInfo(duration.status())->column, "i");
  EXPECT_THAT(NamesIn(root.path()), IsEmpty());
}

std::shared_ptr<arrow::RecordBatch> Noise(int64_t rows, int columns) {
  std::mt19937_64 random(7);
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (int c = 0; c < columns; ++c) {
    arrow::StringBuilder builder;
    for (int64_t i = 0; i < rows; ++i) {
      std::string text(64, '\0');
      for (char& byte : text) byte = static_cast<char>(' ' + random() % 90);
      (void)builder.Append(text);
    }
    arrays.push_back(builder.Finish().ValueOrDie());
    fields.push_back(arrow::field(fmt::format("c{}", c), arrow::utf8()));
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), rows, arrays);
}

TEST(ParquetFileTest, RowGroupsAreBoundedByRows) {
  TemporaryDirectory root;
  auto file = OutputFile::Create(LocalFileSystem(), root / "f", IdSchema(), {.row_group_rows = 1000}).ValueOrDie();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(file->Write(*Ids(int64_t{500} * i, 500).rows).ok());
  ASSERT_TRUE(file->Close().ok());
  auto metadata = parquet::ParquetFileReader::OpenFile(root / "f")->metadata();
  ASSERT_EQ(metadata->num_row_groups(), 3);
  EXPECT_EQ(metadata->RowGroup(0)->num_rows(), 1000);
  EXPECT_EQ(metadata->RowGroup(2)->num_rows(), 500);
}

TEST(ParquetFileTest, RowGroupsAreBoundedByMemory) {
  TemporaryDirectory root;
  auto batch = Noise(50'000, 4);  // 13 MB that no codec makes smaller by much
  constexpr int64_t kLimit = int64_t{4} << 20;
  auto file = OutputFile::Create(LocalFileSystem(), root / "f", batch->schema(), {.row_group_memory = kLimit}).ValueOrDie();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(file->Write(*batch).ok());
  // What an empty row group and the piece being encoded take comes on top.
  EXPECT_LT(file->peak_memory(), 3 * kLimit);
  ASSERT_TRUE(file->Close().ok());
  auto metadata = parquet::ParquetFileReader::OpenFile(root / "f")->metadata();
  EXPECT_EQ(metadata->num_rows(), 200'000);
  EXPECT_GE(metadata->num_row_groups(), 6);
  EXPECT_LE(metadata->num_row_groups(), 20);
  for (int i = 0; i < metadata->num_row_groups(); ++i) EXPECT_GT(metadata->RowGroup(i)->num_rows(), 0);
}

TEST(ParquetFileTest, LendingLessMemoryMakesSmallerRowGroups) {
  TemporaryDirectory root;
  auto batch = Noise(20'000, 1);
  const auto groups = [&](int64_t writer_memory, int64_t row_group_bytes) {
    auto sink =
        MakeSink({.path = root / fmt::format("{}-{}/", writer_memory, row_group_bytes), .parquet_row_group_bytes = row_group_bytes});
    auto context = Context();
    context.writer_memory = writer_memory;
    auto state = sink->Prepare(context, batch->schema()).ValueOrDie();
    auto writer = sink->CreateWriter(context, state, batch->schema()).ValueOrDie();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(writer->Write({.rows = batch, .position = {}}).ok());
    EXPECT_TRUE(writer->PrepareCommit().ok());
    auto name = NamesIn(sink->options().path).at(0);
    return parquet::ParquetFileReader::OpenFile(sink->options().path + "/" + name)->metadata()->num_row_groups();
  };
  EXPECT_EQ(groups(0, int64_t{64} << 20), 1);
  EXPECT_GT(groups(1 << 20, int64_t{64} << 20), 2);
  EXPECT_GT(groups(0, 1 << 20), 2);
}

// The memory of dictionaries is that of columns x writers, whatever the row groups are.
TEST(ParquetFileTest, WideTablesHaveDictionariesOnlyWhereTheMemoryAllowsThem) {
  TemporaryDirectory root;
  arrow::FieldVector members;
  arrow::ArrayVector columns;
  for (int i = 0; i < 100; ++i) {
    members.push_back(arrow::field(fmt::format("c{}", i), arrow::int64()));
    columns.push_back(arrow::json::ArrayFromJSONString(arrow::int64(), "[7, 7, 7]").ValueOrDie());
  }
  auto flat = arrow::RecordBatch::Make(arrow::schema(members), 3, columns);
  auto nested = arrow::RecordBatch::Make(arrow::schema({arrow::field("s", arrow::struct_(members))}), 3,
                                         {arrow::StructArray::Make(columns, members).ValueOrDie()});
  int number = 0;
  for (const auto& batch : {flat, nested}) {
    for (bool enough : {true, false}) {
      const std::string path = root / fmt::format("{}.parquet", number++);
      const FileEncoding encoding{.row_group_memory = (int64_t{128} << 10) * (enough ? 100 : 99)};
      auto file = OutputFile::Create(LocalFileSystem(), path, batch->schema(), encoding).ValueOrDie();
      ASSERT_TRUE(file->Write(*batch).ok());
      ASSERT_TRUE(file->Close().ok());
      auto reader = parquet::ParquetFileReader::OpenFile(path);
      EXPECT_EQ(reader->metadata()->num_columns(), 100);
      EXPECT_EQ(reader->metadata()->RowGroup(0)->ColumnChunk(99)->has_dictionary_page(), enough);
    }
  }
}

TEST(ParquetFileTest, EachCompression) {
  TemporaryDirectory root;
  const std::pair<const char*, parquet::Compression::type> cases[] = {{"zstd", parquet::Compression::ZSTD},
                                                                      {"snappy", parquet::Compression::SNAPPY},
                                                                      {"gzip", parquet::Compression::GZIP},
                                                                      {"lz4", parquet::Compression::LZ4},
                                                                      {"none", parquet::Compression::UNCOMPRESSED}};
  for (const auto& [name, codec] : cases) {
    FaultyFileSystem sound;
    EngineStore store;
    Engine engine{.sink = MakeSink({.path = root / (std::string(name) + ".parquet"), .parquet_compression = name}),
                  .files = &sound,
                  .interval = 1000};
    ASSERT_TRUE(engine.Run(&store, 1).ok());
    auto metadata = parquet::ParquetFileReader::OpenFile(root / (std::string(name) + ".parquet"))->metadata();
    EXPECT_EQ(metadata->RowGroup(0)->ColumnChunk(0)->compression(), codec) << name;
    EXPECT_EQ(ReadTable(LocalFileSystem(), root / (std::string(name) + ".parquet")).ValueOrDie()->num_rows(), 60);
  }
}

struct TypeCase {
  TypeKind kind;
  const char* values;   // as JSON of Arrow's reader; null, extremes, empty
  const char* parquet;  // physical type and annotation, as Parquet's schema printer says them
};

const TypeCase kTypeCases[] = {
    {TypeKind::kInt64, "[null, -9223372036854775808, 9223372036854775807, 0]", "int64 field_id=-1 c;"},
    {TypeKind::kFloat64, "[null, -1.5, 1e308, 0]", "double field_id=-1 c;"},
    {TypeKind::kBool, "[null, true, false, true]", "boolean field_id=-1 c;"},
    {TypeKind::kString, R"([null, "", "größe", "x"])", "binary field_id=-1 c (String);"},
    {TypeKind::kBytes, R"([null, "", "abc", "x"])", "binary field_id=-1 c;"},
    {TypeKind::kNumeric, R"([null, "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999", "0.000000001"])",
     "fixed_len_byte_array(16) field_id=-1 c (Decimal(precision=38, scale=9));"},
    {TypeKind::kBigNumeric,
     R"([null, "12345678901234567890123456789012345678.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001", "1.00000000000000000000000000000000000000"])",
     "fixed_len_byte_array(32) field_id=-1 c (Decimal(precision=76, scale=38));"},
    {TypeKind::kDate, "[null, -719162, 2932896, 0]", "int32 field_id=-1 c (Date);"},
    {TypeKind::kTime, "[null, 0, 86399999999, 1]", "int64 field_id=-1 c (Time(isAdjustedToUTC=false, timeUnit=microseconds));"},
    {TypeKind::kDatetime, "[null, -62135596800000000, 253402300799999999, -1]",
     "int64 field_id=-1 c (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds,"},
    {TypeKind::kTimestamp, "[null, -62135596800000000, 253402300799999999, -1]",
     "int64 field_id=-1 c (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds,"},
    {TypeKind::kTimestamp12,
     R"x([null, "2024-01-02T03:04:05.123456789012Z", "0001-01-01T00:00:00.000000000000Z", "9999-12-31T23:59:59.999999999999Z"])x",
     "binary field_id=-1 c (String);"},
    {TypeKind::kInterval,
     R"x([null, {"months": 14, "days": 3, "microseconds": -1}, {"months": -1, "days": 0, "microseconds": 0},
         {"months": 0, "days": 0, "microseconds": 0}])x",
     "group field_id=-1 c {"},
    {TypeKind::kRange, R"x([null, {"start": 0, "end": 1}, {"start": null, "end": -1}, {"start": null, "end": null}])x",
     "group field_id=-1 c {"},
    {TypeKind::kGeography, R"x([null, "POINT(1 2)", "", "x"])x", "binary field_id=-1 c (String);"},
    {TypeKind::kJson, R"x([null, "{\"a\": [1]}", "null", "\"x\""])x", "binary field_id=-1 c (String);"},
    {TypeKind::kStruct, R"x([null, {"x": null, "r": []}, {"x": 1, "r": ["a", "b"]}, {"x": 2, "r": [""]}])x", "group field_id=-1 c {"},
};

std::shared_ptr<arrow::Table> WriteAndRead(const std::string& path, const std::shared_ptr<arrow::Schema>& schema,
                                           const std::shared_ptr<arrow::RecordBatch>& batch) {
  auto sink = MakeSink({.path = path});
  auto state = sink->Prepare(Context(), schema);
  EXPECT_TRUE(state.ok()) << state.status();
  auto writer = sink->CreateWriter(Context(), *state, schema).ValueOrDie();
  auto written = writer->Write({.rows = batch, .position = {}});
  EXPECT_TRUE(written.ok()) << written;
  auto committed = sink->CreateCommitter(Context(), *state).ValueOrDie()->Commit(writer->PrepareCommit().ValueOrDie());
  EXPECT_EQ(committed.at(0).outcome, CommitOutcome::kCommitted);
  auto table = ReadTable(LocalFileSystem(), path);
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

TEST(ParquetTypesTest, EveryTypeRoundTripsInEveryMode) {
  TemporaryDirectory root;
  EXPECT_EQ(std::size(kTypeCases), TypeTable().size() - 1);
  for (const auto& item : kTypeCases) {
    SCOPED_TRACE(std::string(TypeName(item.kind)));
    Field field{.name = "c", .kind = item.kind};
    if (item.kind == TypeKind::kStruct) {
      field.fields = {{.name = "x", .kind = TypeKind::kInt64}, {.name = "r", .kind = TypeKind::kString, .mode = Mode::kRepeated}};
    }
    auto schema = ToArrowSchema({{field}}).ValueOrDie();
    std::shared_ptr<arrow::Array> values;
    if (item.kind == TypeKind::kStruct || item.kind == TypeKind::kInterval) {
      // Arrow's JSON reader makes no null struct with a child that cannot be null.
      arrow::FieldVector children;
      for (const auto& child : schema->field(0)->type()->fields()) children.push_back(child->WithNullable(true));
      auto inner = arrow::struct_(children);
      auto parsed = arrow::json::ArrayFromJSONString(inner, item.values).ValueOrDie();
      const auto& rows = static_cast<const arrow::StructArray&>(*parsed);
      values = std::make_shared<arrow::StructArray>(schema->field(0)->type(), rows.length(), rows.fields(), rows.null_bitmap(), 1);
    } else {
      values = arrow::json::ArrayFromJSONString(schema->field(0)->type(), item.values).ValueOrDie();
    }
    const std::string name(TypeName(item.kind));
    auto table = WriteAndRead(root / (name + ".parquet"), schema, arrow::RecordBatch::Make(schema, 4, {values}));
    EXPECT_TRUE(table->schema()->Equals(*schema, /*check_metadata=*/true)) << table->schema()->ToString();
    EXPECT_TRUE(table->column(0)->Equals(arrow::ChunkedArray(values))) << table->column(0)->ToString();
    EXPECT_EQ(FromArrowSchema(*table->schema()).ValueOrDie(), TableSchema{{field}});
    std::ostringstream printed;
    auto reader = parquet::ParquetFileReader::OpenFile(root / (name + ".parquet"));
    parquet::schema::PrintSchema(reader->metadata()->schema()->schema_root().get(), printed);
    EXPECT_THAT(printed.str(), HasSubstr(std::string("optional ") + item.parquet));

    field.mode = Mode::kRepeated;
    auto list_schema = ToArrowSchema({{field}}).ValueOrDie();
    auto offsets = arrow::json::ArrayFromJSONString(arrow::int32(), "[0, 2, 2, 3]").ValueOrDie();
    auto lists = arrow::ListArray::FromArrays(list_schema->field(0)->type(), *offsets, *values->Slice(1)).ValueOrDie();
    auto list_table = WriteAndRead(root / (name + "-list.parquet"), list_schema, arrow::RecordBatch::Make(list_schema, 3, {lists}));
    EXPECT_TRUE(list_table->column(0)->Equals(arrow::ChunkedArray(lists))) << list_table->column(0)->ToString();
    EXPECT_EQ(FromArrowSchema(*list_table->schema()).ValueOrDie(), TableSchema{{field}});
    std::ostringstream list_printed;
    auto list_reader = parquet::ParquetFileReader::OpenFile(root / (name + "-list.parquet"));
    parquet::schema::PrintSchema(list_reader->metadata()->schema()->schema_root().get(), list_printed);
    EXPECT_THAT(list_printed.str(), HasSubstr("c (List)"));
    EXPECT_THAT(list_printed.str(), HasSubstr("element"));
  }
}

TEST(ParquetTypesTest, FifteenLevelsOfArraysOfStructs) {
  TemporaryDirectory root;
  Field field{.name = "x", .kind = TypeKind::kInt64};
  for (int i = 0; i < kMaxNesting; ++i) field = {.name = "s", .kind = TypeKind::kStruct, .mode = Mode::kRepeated, .fields = {field}};
  auto schema = ToArrowSchema({{field}}).ValueOrDie();
  std::string value = "7";
  for (int i = 0; i < kMaxNesting; ++i) value = fmt::format(R"([{{"{}": {}}}])", i == 0 ? "x" : "s", value);
  auto values = arrow::json::ArrayFromJSONString(schema->field(0)->type(), "[" + value + ", []]").ValueOrDie();
  auto table = WriteAndRead(root / "deep.parquet", schema, arrow::RecordBatch::Make(schema, 2, {values}));
  EXPECT_TRUE(table->column(0)->Equals(arrow::ChunkedArray(values)));
}

// BIGNUMERIC's very largest values have 39 integer digits, which Arrow's validation refuses and 256 bits hold.
TEST(ParquetTypesTest, ThirtyNineDigitsSurvive) {
  TemporaryDirectory root;
  auto schema = ToArrowSchema({{{.name = "c", .kind = TypeKind::kBigNumeric}}}).ValueOrDie();
  const auto largest = arrow::Decimal256("57896044618658097711785492504343953926634992332820282019728792003956564819967");  // 2^255 - 1
  arrow::Decimal256Builder builder(schema->field(0)->type());
  ASSERT_TRUE(builder.Append(largest).ok());
  auto values = builder.Finish().ValueOrDie();
  auto table = WriteAndRead(root / "b.parquet", schema, arrow::RecordBatch::Make(schema, 1, {values}));
  const auto& read = static_cast<const arrow::Decimal256Array&>(*table->column(0)->chunk(0));
  EXPECT_EQ(arrow::Decimal256(read.GetValue(0)), largest);
}

}  // namespace
}  // namespace headrace
