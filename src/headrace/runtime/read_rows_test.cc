#include "headrace/runtime/read_rows.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/checkpoint_store.h"
#include "headrace/runtime/fake_source_testing.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadRowsTest : public ::testing::Test {
 protected:
  template <typename T>
  arrow::Result<std::unique_ptr<RowReader<T>>> Open(RowMapper<T> mapper, const ReadRowsOptions& options = {.read = {.ordered = true}}) {
    return ReadRows<T>(std::make_shared<ScriptedSource>(script_), std::move(mapper), options);
  }
  static arrow::Status Whole(const RowView& row, const Collector<int64_t>& out) {
    ARROW_ASSIGN_OR_RAISE(int64_t id, row["ID"].Int64());
    return out.Emit(id);
  }
  /// As many copies of each row as its number is when divided by `n`.
  static RowMapper<int64_t> Copies(int64_t n) {
    return [n](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(int64_t id, row[0].Int64());
      for (int64_t i = 0; i < id % n; ++i) ARROW_RETURN_NOT_OK(out.Emit(id));
      return arrow::Status::OK();
    };
  }
  template <typename T>
  static arrow::Result<std::vector<T>> All(RowReader<T>* reader) {
    std::vector<T> records;
    while (true) {
      ARROW_ASSIGN_OR_RAISE(auto record, reader->Next());
      if (!record) return records;
      records.push_back(std::move(*record));
    }
  }
  /// The rows that come after the reader's position.
  std::vector<int64_t> Rest(const std::string& state, ReadOptions read = {.ordered = true}) {
    auto reader = Open<int64_t>(Whole, {.read = std::move(read), .state = state});
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto rows = All(reader->get());
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::sort(rows->begin(), rows->end());
    return *rows;
  }
  static std::vector<int64_t> Numbers(int64_t first, int64_t end) {
    std::vector<int64_t> rows(static_cast<size_t>(end - first));
    std::iota(rows.begin(), rows.end(), first);
    return rows;
  }
  std::shared_ptr<SourceScript> script_ = std::make_shared<SourceScript>();
};

TEST_F(ReadRowsTest, EveryRowOnceWhateverTheSplitsCutsAndReaders) {
  script_->splits = {{0, 10}, {10, 20}, {20, 20}, {20, 35}};
  for (const auto& options : {ReadOptions{.ordered = true}, ReadOptions{.readers = 1}, ReadOptions{.readers = 8}, ReadOptions{}}) {
    script_->cuts[4] = 7;
    auto reader = Open<int64_t>(Whole, {.read = options}).ValueOrDie();
    auto rows = All(reader.get());
    ASSERT_TRUE(rows.ok()) << rows.status();
    if (!options.ordered) std::sort(rows->begin(), rows->end());
    EXPECT_EQ(*rows, Numbers(0, 35));
    EXPECT_EQ(reader->counts(), (RowCounts{.rows = 35, .records = 35}));
    EXPECT_EQ(reader->Next().ValueOrDie(), std::nullopt) << "the end stays the end";
    EXPECT_TRUE(Rest(reader->Snapshot().ValueOrDie()).empty());
  }
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadRowsTest, NoSplitIsNoRow) {
  auto reader = Open<int64_t>(Whole).ValueOrDie();
  EXPECT_EQ(reader->schema().field(0).name, "id");
  EXPECT_EQ(reader->Next().ValueOrDie(), std::nullopt);
}

// Spec 31: zero, one and five records of a row move the position by one each; none is a skipped row.
TEST_F(ReadRowsTest, ZeroOneAndFiveRecordsMoveThePositionByOneRow) {
  script_->splits = {{0, 3}};
  MetricRegistry metrics;
  const std::vector<int64_t> copies = {0, 1, 5};
  auto reader = Open<int64_t>(
                    [&](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
                      ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
                      for (int64_t i = 0; i < copies[static_cast<size_t>(id)]; ++i) ARROW_RETURN_NOT_OK(out.Emit(id * 10 + i));
                      return arrow::Status::OK();
                    },
                    {.read = {.ordered = true, .context = {.metrics = &metrics}}})
                    .ValueOrDie();
  EXPECT_EQ(metrics.Snapshot().at("recordsSkipped"), 0) << "a counter that never counted is there all the same";
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(0, 3));
  EXPECT_EQ(reader->Next().ValueOrDie(), 10);
  EXPECT_EQ(reader->counts(), (RowCounts{.rows = 2, .records = 1, .skipped = 1}));
  EXPECT_EQ(metrics.Snapshot().at("recordsSkipped"), 1);
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(2, 3));
  for (int64_t want : {20, 21, 22, 23}) EXPECT_EQ(reader->Next().ValueOrDie(), want);
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(2, 3)) << "not all of the row's records are handed out";
  EXPECT_EQ(reader->Next().ValueOrDie(), 24);
  EXPECT_TRUE(Rest(reader->Snapshot().ValueOrDie()).empty());
  EXPECT_EQ(reader->Next().ValueOrDie(), std::nullopt);
  EXPECT_EQ(reader->counts(), (RowCounts{.rows = 3, .records = 6, .skipped = 1}));
}

// Spec 31: the mapper fails, or throws, or what takes the records does: the position stays before the row.
TEST_F(ReadRowsTest, AMapperThatFailsLeavesThePositionBeforeTheRow) {
  script_->splits = {{0, 10}, {10, 20}};
  for (int64_t bad : {0, 2, 3, 9, 10, 19}) {
    SCOPED_TRACE(bad);
    auto reader = Open<int64_t>([bad](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
                    ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
                    ARROW_RETURN_NOT_OK(out.Emit(id));
                    if (id == bad) return MakeError({.code = Code::kPermissionDenied, .reason = "MINE"}, "no such luck");
                    return arrow::Status::OK();
                  }).ValueOrDie();
    auto rows = All(reader.get());
    ASSERT_FALSE(rows.ok());
    EXPECT_EQ(CodeOf(rows.status()), Code::kPermissionDenied);
    EXPECT_EQ(GetErrorInfo(rows.status())->reason, "MINE");
    EXPECT_EQ(GetErrorInfo(rows.status())->row, bad % 10);
    EXPECT_THAT(rows.status().message(), HasSubstr("split s" + std::to_string(bad / 10) + ", row " + std::to_string(bad % 10) +
                                                   " of what was read of it, position"));
    EXPECT_THAT(rows.status().message(), HasSubstr("'" + std::to_string(bad) + "': no such luck"));
    EXPECT_EQ(reader->counts().rows, bad);
    EXPECT_EQ(reader->Next().status(), rows.status()) << "the reading has ended";
    EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(bad, 20));
  }
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadRowsTest, AConsumerThatFailsLeavesThePositionBeforeTheRow) {
  script_->splits = {{0, 12}};
  for (int64_t calls : {1, 2, 5, 6}) {
    SCOPED_TRACE(calls);
    auto reader = Open<int64_t>(Copies(4)).ValueOrDie();  // 1, 2 2, 3 3 3, 5, 6 6 ...
    int64_t seen = 0;
    int64_t last = -1;
    auto status = reader->ForEach([&](int64_t id) {
      last = id;
      return ++seen == calls ? arrow::Status::IOError("full") : arrow::Status::OK();
    });
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("position '" + std::to_string(last) + "': full"));
    EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(last, 12));
  }
}

TEST_F(ReadRowsTest, AMapperOrConsumerThatThrowsLeavesThePositionBeforeTheRow) {
  script_->splits = {{0, 8}};
  bool thrown = false;
  auto reader = Open<int64_t>([&](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
                  ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
                  ARROW_RETURN_NOT_OK(out.Emit(id));
                  if (id == 4 && !std::exchange(thrown, true)) throw std::runtime_error("mapper");
                  return arrow::Status::OK();
                }).ValueOrDie();
  EXPECT_THROW((void)All(reader.get()), std::runtime_error);
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(4, 8));
  EXPECT_EQ(reader->Next().ValueOrDie(), 4) << "once, though it was emitted before the mapper threw";
  EXPECT_THROW((void)reader->ForEach([](int64_t) -> arrow::Status { throw std::runtime_error("consumer"); }), std::runtime_error);
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(5, 8));

  // Of the records that were moved into the consumer nothing is left: the row is mapped again.
  auto texts = Open<std::string>([](const RowView& row, const Collector<std::string>& out) -> arrow::Status {
                 ARROW_ASSIGN_OR_RAISE(auto text, row["id"].Text());
                 ARROW_RETURN_NOT_OK(out.Emit(text + " first"));
                 return out.Emit(text + " second");
               }).ValueOrDie();
  std::vector<std::string> taken;
  auto throwing = [&](std::string text) -> arrow::Status {
    taken.push_back(std::move(text));
    if (taken.size() == 4) throw std::runtime_error("full");
    return arrow::Status::OK();
  };
  EXPECT_THROW((void)texts->ForEach(throwing), std::runtime_error);
  EXPECT_EQ(Rest(texts->Snapshot().ValueOrDie()), Numbers(1, 8));
  EXPECT_EQ(texts->Next().ValueOrDie(), "1 first");
  EXPECT_THAT(taken, ElementsAre("0 first", "0 second", "1 first", "1 second"));
}

// Spec 32: a collector kept and used after the call is an error, and so is a null record; the position stays.
TEST_F(ReadRowsTest, ACollectorUsedAfterTheCallIsAnError) {
  script_->splits = {{0, 10}};
  std::optional<Collector<int64_t>> kept;
  arrow::Status late;
  auto mapper = [&](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
    if (id == 5) late = kept->Emit(99);  // in the call of another row, which ends well
    if (!kept) kept = out;
    return out.Emit(id);
  };
  auto reader = Open<int64_t>(mapper).ValueOrDie();
  auto rows = All(reader.get());
  EXPECT_EQ(GetErrorInfo(late)->reason, "COLLECTOR_MISUSED");
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(GetErrorInfo(rows.status())->reason, "COLLECTOR_MISUSED");
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(5, 10));

  kept.reset();
  reader = Open<int64_t>(mapper).ValueOrDie();
  EXPECT_EQ(reader->Next().ValueOrDie(), 0);
  EXPECT_FALSE(kept->Emit(99).ok());  // between calls
  EXPECT_EQ(GetErrorInfo(reader->Next().status())->reason, "COLLECTOR_MISUSED");
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(1, 10));
  reader.reset();
  EXPECT_FALSE(kept->Emit(99).ok()) << "also when the reader is gone";
}

TEST_F(ReadRowsTest, ACollectorOnAnotherThreadIsAnError) {
  script_->splits = {{0, 3}};
  arrow::Status other;
  auto reader = Open<int64_t>([&](const RowView&, const Collector<int64_t>& out) {
                  std::thread([&] { other = out.Emit(7); }).join();
                  return out.Emit(1);
                }).ValueOrDie();
  EXPECT_EQ(GetErrorInfo(All(reader.get()).status())->reason, "COLLECTOR_MISUSED");
  EXPECT_EQ(GetErrorInfo(other)->reason, "COLLECTOR_MISUSED");
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(0, 3));
}

TEST_F(ReadRowsTest, ANullRecordIsAnErrorAlsoWhenTheMapperIgnoresIt) {
  script_->splits = {{0, 10}};
  for (bool ignored : {false, true}) {
    auto reader = Open<std::unique_ptr<int64_t>>([&](const RowView& row, const Collector<std::unique_ptr<int64_t>>& out) -> arrow::Status {
                    ARROW_ASSIGN_OR_RAISE(int64_t id, row["id"].Int64());
                    auto status = out.Emit(id == 4 ? nullptr : std::make_unique<int64_t>(id));
                    return ignored ? arrow::Status::OK() : status;
                  }).ValueOrDie();
    for (int64_t id = 0; id < 4; ++id) EXPECT_EQ(**reader->Next().ValueOrDie(), id);
    auto status = reader->Next().status();
    EXPECT_EQ(GetErrorInfo(status)->reason, "NULL_RECORD");
    EXPECT_THAT(status.message(), HasSubstr("position '4'"));
    EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(4, 10));
  }
}

// Spec 33: what is read but not yet handed out is not behind the position.
TEST_F(ReadRowsTest, ASnapshotExcludesRowsThatWaitToBeHandedOut) {
  script_->splits = {{0, 9}, {100, 109}, {200, 209}};
  script_->blocked = {105};
  auto reader = Open<int64_t>(Whole, {.read = {.readers = 3}}).ValueOrDie();
  std::vector<int64_t> seen;
  auto take = [&] { seen.push_back(*reader->Next().ValueOrDie()); };
  for (int i = 0; i < 4; ++i) take();
  // Each of the others has a batch waiting, or stands in front of its blocked row.
  auto state = reader->Snapshot().ValueOrDie();
  auto rest = [&] {
    script_->Unblock(105);
    auto rows = Rest(state, {.readers = 2});
    rows.insert(rows.end(), seen.begin(), seen.end());
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  std::vector<int64_t> all;
  for (int64_t first : {0, 100, 200}) {
    for (int64_t i = 0; i < 9; ++i) all.push_back(first + i);
  }
  EXPECT_EQ(rest(), all);
}

TEST_F(ReadRowsTest, ASnapshotAtEveryRowGivesEveryRowOnce) {
  script_->splits = {{0, 7}, {10, 17}, {20, 24}};
  std::vector<int64_t> all;
  for (const Range& range : script_->splits) {
    for (int64_t row = range.begin; row < range.end; ++row) all.push_back(row);
  }
  for (size_t taken = 0; taken <= all.size(); ++taken) {
    SCOPED_TRACE(taken);
    script_->cuts = {{12, 14}};
    auto reader = Open<int64_t>(Whole, {.read = {.readers = 2}}).ValueOrDie();
    std::vector<int64_t> rows;
    rows.reserve(all.size());
    for (size_t i = 0; i < taken; ++i) rows.push_back(*reader->Next().ValueOrDie());
    auto state = reader->Snapshot().ValueOrDie();
    reader.reset();
    auto resumed = Open<int64_t>(Whole, {.read = {.readers = 2}, .state = state}).ValueOrDie();
    EXPECT_EQ(resumed->counts().rows, static_cast<int64_t>(taken));
    auto more = All(resumed.get());
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_EQ(resumed->counts().rows, static_cast<int64_t>(all.size()));
    rows.insert(rows.end(), more->begin(), more->end());
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(rows, all);
  }
}

TEST_F(ReadRowsTest, AnErrorOfTheSourceKeepsThePositionBehindWhatWasHandedOut) {
  script_->splits = {{0, 10}};
  script_->errors[6] = {MakeError({.code = Code::kUnavailable}, "gone")};
  auto reader = Open<int64_t>(Whole).ValueOrDie();
  for (int64_t id = 0; id < 6; ++id) EXPECT_EQ(reader->Next().ValueOrDie(), id);
  auto status = reader->Next().status();
  EXPECT_EQ(CodeOf(status), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("split s0: gone"));
  EXPECT_EQ(reader->Next().status(), status);
  EXPECT_EQ(Rest(reader->Snapshot().ValueOrDie()), Numbers(6, 10));
}

TEST_F(ReadRowsTest, AFailingReaderEndsTheOthersToo) {
  script_->splits = {{0, 300}, {300, 600}, {600, 900}};
  script_->errors[603] = {MakeError({.code = Code::kDataLoss}, "bad")};
  auto reader = Open<int64_t>(Whole, {.read = {.readers = 3}}).ValueOrDie();
  EXPECT_EQ(CodeOf(All(reader.get()).status()), Code::kDataLoss);
  reader.reset();
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadRowsTest, BatchesLeaveTheBudgetWhenTheyAreHandedOver) {
  script_->splits = {{0, 60}, {60, 120}, {120, 180}};
  script_->batch_bytes = 500'000;  // of a budget of one mebibyte
  MemoryBudget budget(1 << 20);
  auto reader = Open<int64_t>(Whole, {.read = {.readers = 3, .context = {.memory = &budget}}}).ValueOrDie();
  auto rows = All(reader.get());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), 180U);
  EXPECT_LE(budget.peak(), budget.limit());
  EXPECT_EQ(budget.used(), 0);
}

TEST_F(ReadRowsTest, CancelEndsAWaitAndKeepsThePosition) {
  script_->splits = {{0, 10}};
  script_->blocked = {6};
  auto reader = Open<int64_t>(Whole).ValueOrDie();
  for (int64_t id = 0; id < 5; ++id) EXPECT_EQ(reader->Next().ValueOrDie(), id);
  std::thread canceller([&] {
    EXPECT_TRUE(script_->WaitForBlocked(1));
    reader->Cancel();
  });
  EXPECT_EQ(reader->Next().ValueOrDie(), 5);
  EXPECT_EQ(CodeOf(reader->Next().status()), Code::kCancelled);
  canceller.join();
  auto state = reader->Snapshot().ValueOrDie();
  reader.reset();
  EXPECT_EQ(script_->open_readers, 0);
  script_->blocked.clear();
  EXPECT_EQ(Rest(state), Numbers(6, 10));
}

TEST_F(ReadRowsTest, AStopOfTheReadOptionsIsACancel) {
  script_->splits = {{0, 10}};
  script_->blocked = {6};
  std::stop_source stop;
  auto reader = Open<int64_t>(Whole, {.read = {.stop = stop.get_token()}}).ValueOrDie();
  for (int64_t id = 0; id < 5; ++id) EXPECT_EQ(reader->Next().ValueOrDie(), id);
  std::thread other([&] {
    EXPECT_TRUE(script_->WaitForBlocked(1));
    stop.request_stop();
  });
  EXPECT_EQ(reader->Next().ValueOrDie(), 5);
  EXPECT_EQ(CodeOf(reader->Next().status()), Code::kCancelled);
  other.join();
}

TEST_F(ReadRowsTest, DestroyingAReaderCancelsWhatWaits) {
  script_->splits = {{0, 10}, {10, 4000}, {5000, 6000}};
  script_->blocked = {5};
  script_->batch_bytes = 600'000;
  auto reader = Open<int64_t>(Whole, {.read = {.readers = 3, .memory_limit = 1 << 20}}).ValueOrDie();
  EXPECT_TRUE(reader->Next().ok());
  reader.reset();
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadRowsTest, TheMapperMayBeMadeFromTheSchema) {
  script_->splits = {{0, 4}};
  auto reader =
      ReadRowsWith<int64_t>(std::make_shared<ScriptedSource>(script_), [](const RowSchema& schema) -> arrow::Result<RowMapper<int64_t>> {
        ARROW_ASSIGN_OR_RAISE(const int id, schema.Find("Id"));
        return [id](const RowView& row, const Collector<int64_t>& out) -> arrow::Status {
          ARROW_ASSIGN_OR_RAISE(int64_t value, row[id].Int64());
          return out.Emit(value);
        };
      }).ValueOrDie();
  EXPECT_EQ(All(reader.get()).ValueOrDie(), Numbers(0, 4));
  auto refused =
      ReadRowsWith<int64_t>(std::make_shared<ScriptedSource>(script_), [](const RowSchema& schema) -> arrow::Result<RowMapper<int64_t>> {
        ARROW_RETURN_NOT_OK(schema.Find("name").status());
        return RowMapper<int64_t>();
      });
  EXPECT_EQ(CodeOf(refused.status()), Code::kNotFound);
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadRowsTest, AWrongGetterFailsTheRowByNameOfTheColumn) {
  script_->splits = {{0, 4}};
  auto reader = Open<std::string>([](const RowView& row, const Collector<std::string>& out) -> arrow::Status {
                  ARROW_ASSIGN_OR_RAISE(auto text, row["id"].String());
                  return out.Emit(std::string(text));
                }).ValueOrDie();
  auto status = reader->Next().status();
  EXPECT_EQ(GetErrorInfo(status)->reason, "WRONG_TYPE");
  EXPECT_EQ(GetErrorInfo(status)->column, "id");
  EXPECT_EQ(GetErrorInfo(status)->row, 0);
}

TEST_F(ReadRowsTest, OptionsAndStatesAreChecked) {
  for (const auto& options : {ReadOptions{.readers = -1}, ReadOptions{.readers = 1001}, ReadOptions{.readers = 2, .ordered = true},
                              ReadOptions{.memory_limit = 1}}) {
    EXPECT_EQ(CodeOf(Open<int64_t>(Whole, {.read = options}).status()), Code::kInvalidArgument);
  }
  script_->splits = {{0, 4}};
  auto state = Open<int64_t>(Whole).ValueOrDie()->Snapshot().ValueOrDie();
  EXPECT_EQ(script_->plans, 1);
  EXPECT_EQ(Rest(state), Numbers(0, 4));
  EXPECT_EQ(script_->plans, 1) << "a reading that goes on never plans";
  for (auto& bad : {std::string("x"), state.substr(0, state.size() - 1), state + "x"}) {
    EXPECT_EQ(CodeOf(Open<int64_t>(Whole, {.state = bad}).status()), Code::kDataLoss);
  }
  std::string job = EncodeCheckpoint({.planned = true, .prepared = true, .schema = arrow::schema({})}).ValueOrDie();
  EXPECT_THAT(Open<int64_t>(Whole, {.state = job}).status().message(), HasSubstr("checkpoint of a job"));
  std::string other = EncodeCheckpoint({.planned = true, .schema = arrow::schema({})}).ValueOrDie();
  EXPECT_EQ(GetErrorInfo(Open<int64_t>(Whole, {.state = other}).status())->reason, "SCHEMA_CHANGED");
  script_->boundedness = Boundedness::kContinuous;
  EXPECT_EQ(CodeOf(Open<int64_t>(Whole).status()), Code::kUnimplemented);
}

}  // namespace
}  // namespace headrace::testing
