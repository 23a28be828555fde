#include "headrace/files/file_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <future>
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
#include "headrace/files/internal/standard_stream.h"
#include "headrace/files/manifest.h"
#include "headrace/files/read_table.h"
#include "headrace/types/type_table.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
      {"none/x/", false, Code::kNotFound, "is not there"},
      {"none/x.parquet", false, Code::kNotFound, "is not there"},
      {"file.parquet/x.parquet", false, Code::kNotFound, "which is a file"},
  };
  const auto before = NamesIn(root.path());
  for (const auto& item : cases) {
    SCOPED_TRACE(fmt::format("{} overwrite {}", item.path, item.overwrite));
    auto sink = MakeSink({.path = root / item.path, .overwrite = item.overwrite});
    auto status = sink->Check(TestContext());
    EXPECT_EQ(CodeOf(status), item.code) << status;
    EXPECT_THAT(status.message(), HasSubstr(item.text));
    EXPECT_EQ(NamesIn(root.path()), before);
    if (item.code != Code::kOk) {
      EXPECT_EQ(CodeOf(sink->Prepare(TestContext(), IdSchema()).status()), item.code);
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
    auto context = TestContext();
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
  EXPECT_EQ(CodeOf(MakeSink({.path = root / "dangling.parquet"})->Check(TestContext())), Code::kAlreadyExists);
  EXPECT_TRUE(MakeSink({.path = root / "dangling.parquet", .overwrite = true})->Check(TestContext()).ok());
  std::filesystem::create_symlink("nowhere", root / "dangling");
  EXPECT_EQ(CodeOf(MakeSink({.path = root / "dangling/"})->Check(TestContext())), Code::kFailedPrecondition);
  const std::string longest(255 - std::string_view(".parquet").size(), 'n');  // NAME_MAX; the temporary name is longer
  EXPECT_FALSE(MakeSink({.path = root / (longest + ".parquet")})->Check(TestContext()).ok());
  EXPECT_EQ(NamesIn(root.path()).size(), 2u);
}

TEST(FileSinkTargetTest, ADirectoryThatCannotBeWritten) {
  TemporaryDirectory root;
  FaultyFileSystem files(0);
  auto status = MakeSink({.path = root / "new/"})->Check(TestContext(&files));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("nothing can be written to the directory {}", root.path())));
}

TEST(FileSinkTargetTest, PrepareTwiceAndFinishTwice) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root / "out/"});
  ASSERT_TRUE(sink->Prepare(TestContext(), IdSchema()).ok());
  auto state = sink->Prepare(TestContext(), IdSchema());
  ASSERT_TRUE(state.ok()) << state.status();
  Report report;
  report.facts = {{"session", "s1"}};
  for (int i = 0; i < 2; ++i) {
    auto finished = sink->Finish(TestContext(), *state, IdSchema(), {}, report);
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
  ASSERT_TRUE(sink->RemoveOrphans(TestContext(), *state, {}).ok());
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), root / "out", *manifest).ok());
}

TEST(FileSinkTargetTest, AnotherJobsResultIsNotReplaced) {
  TemporaryDirectory root;
  FaultyFileSystem sound;
  auto sink = MakeSink({.path = root / "out/"});
  auto state = sink->Prepare(TestContext(), IdSchema());
  ASSERT_TRUE(state.ok());
  EngineStore store;
  ASSERT_TRUE((Engine{.sink = sink, .files = &sound, .run_id = "01d01d01"}.Run(&store, 1).ok()));
  auto finished = sink->Finish(TestContext(), *state, IdSchema(), {}, {});
  EXPECT_EQ(CodeOf(finished), Code::kAlreadyExists) << finished;
  ASSERT_TRUE(sink->Abandon(TestContext(), *state).ok());
  auto manifest = ReadManifest(LocalFileSystem(), root / "out");
  ASSERT_TRUE(manifest.ok());
  EXPECT_TRUE(VerifyManifest(LocalFileSystem(), root / "out", *manifest).ok());
  EXPECT_EQ(NamesIn(root / "out").size(), manifest->files.size() + 1);
}

// The other one may finish between the look for its manifest and the writing of ours.
TEST(FileSinkTargetTest, OfTwoJobsThatFinishAtOnceTheFirstHasTheResult) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root / "out/"});
  auto state = sink->Prepare(TestContext(), IdSchema());
  ASSERT_TRUE(state.ok());
  const std::string others = ManifestToJson({.format = "parquet", .run_id = "01d01d01", .schema = IdSchema()}).ValueOrDie();
  FaultyFileSystem ours;
  int finished = 0;
  ours.set_before_rename([&](const std::string& to) {
    if (!to.ends_with("_headrace_manifest.json") || finished++ > 0) return;
    ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), to, others, false).ok());
  });
  const auto late = sink->Finish(TestContext(&ours), *state, IdSchema(), {}, {});
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(CodeOf(late), Code::kAlreadyExists) << late;
  EXPECT_NE(late.message().find("another job (run 01d01d01)"), std::string::npos) << late;
  ASSERT_TRUE(sink->Abandon(TestContext(), *state).ok());
  auto manifest = ReadManifest(LocalFileSystem(), root / "out");
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->run_id, "01d01d01");
  EXPECT_EQ(NamesIn(root / "out"), std::vector<std::string>{"_headrace_manifest.json"});
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
  ASSERT_FALSE(sink->Prepare(TestContext(), IdSchema()).ok());
  EXPECT_TRUE(sink->Abandon(TestContext(), "").ok());
  EXPECT_THAT(NamesIn(root.path()), ElementsAre("mine"));
}

TEST(FileSinkTargetTest, AbandonLeavesNothingOfTheJobAndAllOfOthers) {
  for (bool existed : {false, true}) {
    TemporaryDirectory root;
    if (existed) std::filesystem::create_directory(root / "out");
    auto sink = MakeSink({.path = root / "out/"});
    auto state = sink->Prepare(TestContext(), IdSchema());
    ASSERT_TRUE(state.ok());
    auto writer = sink->CreateWriter(TestContext(), *state, IdSchema()).ValueOrDie();
    ASSERT_TRUE(writer->Write(Ids(0, 10)).ok());
    auto committables = writer->PrepareCommit().ValueOrDie();
    auto results = sink->CreateCommitter(TestContext(), *state).ValueOrDie()->Commit(committables);
    EXPECT_EQ(results.at(0).outcome, CommitOutcome::kCommitted);
    ASSERT_TRUE(writer->Write(Ids(10, 10)).ok());
    EXPECT_EQ(NamesIn(root / "out").size(), 2u);
    ASSERT_TRUE(sink->Abandon(TestContext(), *state).ok());
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
  ASSERT_TRUE(sink->RemoveOrphans(TestContext(), EncodeJobState({}), {EncodeWriterState({named})}).ok());
  EXPECT_THAT(NamesIn(root.path()), ElementsAre(".part-01d01d01-00000-0002.parquet.tmp", "letter.txt", "part-01d01d01-00000-0002.parquet",
                                                "part-cafe0123-00000-0001.parquet"));
}

// Found when the job goes on, not when all the rest has been read; nothing is removed before.
TEST(FileSinkTargetTest, AFileThatACheckpointNamesAndThatIsGone) {
  TemporaryDirectory root;
  for (const char* name : {"part-cafe0123-00000-0001.parquet", "part-cafe0123-00000-0002.parquet"}) {
    ASSERT_TRUE(WriteFileAtomically(LocalFileSystem(), root / name, "abc", false).ok());
  }
  auto sink = MakeSink({.path = root.path() + "/"});
  for (const auto& [name, bytes] : {std::pair{"part-cafe0123-00000-0003.parquet", 3}, std::pair{"part-cafe0123-00000-0001.parquet", 4}}) {
    const ManifestFile named{.name = name, .rows = 1, .bytes = bytes, .sha256 = std::string(64, '0')};
    const auto status = sink->RemoveOrphans(TestContext(), EncodeJobState({}), {EncodeWriterState({named})});
    EXPECT_EQ(GetErrorInfo(status)->reason, "FILE_LOST");
    EXPECT_THAT(status.message(), HasSubstr(name));
    EXPECT_EQ(NamesIn(root.path()).size(), 2U);
  }
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
    auto committer = MakeSink({.path = root.path() + "/"})->CreateCommitter(TestContext(), "").ValueOrDie();
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
  auto writer = sink->CreateWriter(TestContext(), "", IdSchema()).ValueOrDie();
  ASSERT_TRUE(writer->Write(Ids(0, 1)).ok());
  auto good = writer->PrepareCommit().ValueOrDie().at(0);
  const ManifestFile other{.name = "part-01d01d01-00000-0001.parquet", .bytes = 3, .sha256 = std::string(64, '0')};
  auto results = sink->CreateCommitter(TestContext(), "").ValueOrDie()->Commit({"rubbish", EncodeCommittable(other), good});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].outcome, CommitOutcome::kFailed);
  EXPECT_EQ(results[1].outcome, CommitOutcome::kFailed);
  EXPECT_EQ(results[2].outcome, CommitOutcome::kCommitted);
}

TEST(FileWriterTest, NamesNeverRepeatAndCountsAreKept) {
  TemporaryDirectory root;
  auto sink = MakeSink({.path = root.path() + "/", .max_file_bytes = 1});
  auto context = TestContext();
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

TEST(StandardOutputTest, AWaitForItsReaderCanBeCancelled) {
  for (const std::string_view kind : {"pipe", "non-blocking pipe", "socket"}) {
    SCOPED_TRACE(kind);
    int ends[2];
    ASSERT_EQ(kind == "socket" ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe2(ends, kind == "pipe" ? 0 : O_NONBLOCK), 0);
    auto interrupt = std::make_shared<StreamInterrupt>();
    auto out = OpenOutputDescriptor(ends[1], interrupt);
    const std::string text(1'000'000, 'x');
    auto writing = std::async(std::launch::async, [&] { return out->Write(text.data(), static_cast<int64_t>(text.size())); });
    std::string taken(200'000, ' ');
    for (size_t got = 0; got < taken.size();) {
      pollfd ready{.fd = ends[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&ready, 1, 10'000), 1);
      const auto more = read(ends[0], taken.data() + got, taken.size() - got);
      ASSERT_GT(more, 0);
      got += static_cast<size_t>(more);
    }
    EXPECT_EQ(taken.find_first_not_of('x'), std::string::npos);
    EXPECT_EQ(writing.wait_for(std::chrono::milliseconds{50}), std::future_status::timeout) << "the pipe is full";
    interrupt->Set();
    ASSERT_EQ(writing.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    EXPECT_EQ(CodeOf(writing.get()), Code::kCancelled);
    EXPECT_TRUE(out->Sync().ok() && out->Close().ok());
    EXPECT_EQ(fcntl(ends[1], F_GETFD), 0) << "it stays open";
    close(ends[0]);
    close(ends[1]);
  }
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
  auto none = sink->Prepare(TestContext(), arrow::schema({}));
  EXPECT_EQ(CodeOf(none.status()), Code::kUnimplemented);
  EXPECT_THAT(none.status().message(), HasSubstr("without columns"));
  auto duration = sink->Prepare(TestContext(), arrow::schema({arrow::field("i", arrow::duration(arrow::TimeUnit::SECOND))}));
  EXPECT_EQ(GetErrorInfo(duration.status())->column, "i");
  EXPECT_THAT(NamesIn(root.path()), IsEmpty());
}

}  // namespace
}  // namespace headrace
