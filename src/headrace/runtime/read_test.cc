#include "headrace/runtime/read.h"

#include <chrono>
#include <stop_token>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/runtime/fake_source_testing.h"

namespace headrace::testing {
namespace {

class ReadTest : public ::testing::Test {
 protected:
  arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> Open(ReadOptions options = {}) {
    return Read(std::make_shared<ScriptedSource>(script_), std::move(options));
  }
  static arrow::Result<std::vector<int64_t>> All(arrow::RecordBatchReader* reader) {
    std::vector<int64_t> rows;
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      ARROW_RETURN_NOT_OK(reader->ReadNext(&batch));
      if (batch == nullptr) return rows;
      for (auto row : RowsOf(*batch)) rows.push_back(row);
    }
  }
  std::shared_ptr<SourceScript> script_ = std::make_shared<SourceScript>();
};

TEST_F(ReadTest, EveryRowOnceInOrderWhenOrdered) {
  script_->splits = {{0, 10}, {10, 20}, {20, 35}};
  script_->cuts[4] = 7;
  for (auto options : {ReadOptions{.ordered = true}, ReadOptions{.readers = 1}, ReadOptions{.readers = 8}, ReadOptions{}}) {
    auto reader = Open(options).ValueOrDie();
    EXPECT_EQ(reader->schema()->num_fields(), 1);
    auto rows = All(reader.get());
    ASSERT_TRUE(rows.ok()) << rows.status();
    if (!options.ordered) std::sort(rows->begin(), rows->end());
    ASSERT_EQ(rows->size(), 35U);
    for (int64_t i = 0; i < 35; ++i) EXPECT_EQ((*rows)[static_cast<size_t>(i)], i);
  }
}

TEST_F(ReadTest, NoSplitIsAnEmptyStreamWithASchema) {
  auto reader = Open().ValueOrDie();
  EXPECT_EQ(reader->schema()->field(0)->name(), "id");
  EXPECT_TRUE(All(reader.get())->empty());
}

TEST_F(ReadTest, BatchesLeaveTheBudgetWhenTheyAreHandedOut) {
  // A table of ten times the budget, all of it kept by the caller.
  script_->splits = {{0, 60}};
  script_->batch_bytes = 500'000;
  auto reader = Open({.memory_limit = 1 << 20}).ValueOrDie();
  auto table = reader->ToTable();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->num_rows(), 60);
}

TEST_F(ReadTest, AnErrorOfAReaderIsTheStreams) {
  script_->splits = {{0, 10}, {10, 20}};
  script_->errors[13] = {MakeError({.code = Code::kUnavailable, .retryable = true}, "gone")};
  auto reader = Open().ValueOrDie();
  auto rows = All(reader.get());
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(CodeOf(rows.status()), Code::kUnavailable);
  EXPECT_THAT(rows.status().message(), ::testing::HasSubstr("split s1: gone"));
}

TEST_F(ReadTest, DestroyingTheReaderCancelsWhatWaits) {
  script_->splits = {{0, 10}, {10, 4000}};
  script_->blocked = {5};
  script_->batch_bytes = 600'000;
  auto reader = Open({.memory_limit = 1 << 20}).ValueOrDie();
  reader.reset();
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadTest, AStopEndsAWaitForRows) {
  script_->splits = {{0, 10}};
  script_->blocked = {6};
  std::stop_source stop;
  auto reader = Open({.stop = stop.get_token()}).ValueOrDie();
  std::thread other([&] {
    EXPECT_TRUE(script_->WaitForBlocked(1));
    stop.request_stop();
  });
  EXPECT_EQ(CodeOf(All(reader.get()).status()), Code::kCancelled);
  other.join();
  std::shared_ptr<arrow::RecordBatch> batch;
  EXPECT_EQ(CodeOf(reader->ReadNext(&batch)), Code::kCancelled);
  reader.reset();
  EXPECT_EQ(script_->open_readers, 0);
}

TEST_F(ReadTest, AStopEndsThePlanning) {
  script_->splits = {{0, 10}};
  script_->block_start = true;
  std::stop_source stop;
  std::thread other([&] {
    std::unique_lock<std::mutex> lock(script_->mutex);
    EXPECT_TRUE(script_->changed.wait_for(lock, std::chrono::seconds{10}, [&] { return script_->starting == 1; }));
    lock.unlock();
    stop.request_stop();
  });
  EXPECT_EQ(CodeOf(Open({.stop = stop.get_token()}).status()), Code::kCancelled);
  other.join();
  EXPECT_EQ(CodeOf(Open({.stop = stop.get_token()}).status()), Code::kCancelled) << "requested before";
}

TEST_F(ReadTest, ALongNameOfASplitIsWholeOnlyForPrograms) {
  const std::string name = "projects/p/locations/us/sessions/" + std::string(100, 's') + "/streams/" + std::string(200, 't');
  script_->splits = {{0, 10}};
  script_->first_id = name;
  script_->errors[3] = {MakeError({.code = Code::kUnavailable}, "gone")};
  const auto status = All(Open().ValueOrDie().get()).status();
  EXPECT_THAT(status.message(), ::testing::HasSubstr("split .../streams/tttttttt...tttttttttttt: gone"));
  EXPECT_EQ(GetErrorInfo(status)->resource, name);
}

TEST_F(ReadTest, OptionsAreChecked) {
  for (auto options : {ReadOptions{.readers = -1}, ReadOptions{.readers = 1001}, ReadOptions{.readers = 2, .ordered = true},
                       ReadOptions{.memory_limit = 1}}) {
    EXPECT_EQ(CodeOf(Open(options).status()), Code::kInvalidArgument);
  }
  script_->boundedness = Boundedness::kContinuous;
  EXPECT_EQ(CodeOf(Open().status()), Code::kUnimplemented);
  script_->boundedness = Boundedness::kBounded;
  script_->start_error = arrow::Status::IOError("no session");
  EXPECT_THAT(Open().status().message(), ::testing::HasSubstr("planning: no session"));
}

}  // namespace
}  // namespace headrace::testing
