// The checkpoint directory and the bytes in it. docs/formats/checkpoint.md is the document; the golden bytes keep it true.
#include "headrace/runtime/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "headrace/runtime/memory_files_testing.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointState FullState() {
  CheckpointState state;
  state.checkpoint = 7;
  state.job_name = "flights";
  state.run_id = "0123abcd";
  state.configuration = {{"from", "bq:p.d.t"}, {"to", "out"}};
  state.planned = state.prepared = true;
  state.ledger.enumerator = "E";
  state.ledger.assigned = {
      {.split = {.id = "s0", .descriptor = "D", .position = "P", .end_position = "Q", .estimated_bytes = 2.5}, .writer = 1, .attempt = 4},
      {.split = {.id = "s1"}, .writer = 0, .attempt = 5}};
  state.ledger.next_attempt = 6;
  state.ledger.counts = {.rows = 10, .wire_bytes = 11, .memory_bytes = 12, .finished = 1, .cuts = 2};
  state.schema = arrow::schema({arrow::field("id", arrow::int64(), false)});
  state.sink_state = "K";
  state.writer_states = {"w0", "w1"};
  state.committables = {"c0"};
  state.report = {.records_in = 10,
                  .rows_written = 9,
                  .rows_rejected = 1,
                  .rows_skipped = 3,
                  .bytes_written = 80,
                  .restarts = 2,
                  .fraction = 0.5,
                  .facts = {{"session", "S"}},
                  .warnings = {"careful"}};
  return state;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += "0123456789abcdef"[byte >> 4], text += "0123456789abcdef"[byte & 15];
  return text;
}

void ExpectEqual(const CheckpointState& a, const CheckpointState& b) {
  EXPECT_EQ(a.checkpoint, b.checkpoint);
  EXPECT_EQ(a.job_name, b.job_name);
  EXPECT_EQ(a.run_id, b.run_id);
  EXPECT_EQ(a.configuration, b.configuration);
  EXPECT_EQ(a.planned, b.planned);
  EXPECT_EQ(a.prepared, b.prepared);
  EXPECT_EQ(a.final, b.final);
  EXPECT_EQ(a.ledger.enumerator, b.ledger.enumerator);
  EXPECT_EQ(a.ledger.assigned, b.ledger.assigned);
  EXPECT_EQ(a.ledger.next_attempt, b.ledger.next_attempt);
  EXPECT_EQ(a.ledger.counts, b.ledger.counts);
  EXPECT_EQ(a.sink_state, b.sink_state);
  EXPECT_EQ(a.writer_states, b.writer_states);
  EXPECT_EQ(a.committables, b.committables);
  EXPECT_EQ(a.report.records_in, b.report.records_in);
  EXPECT_EQ(a.report.rows_written, b.report.rows_written);
  EXPECT_EQ(a.report.rows_rejected, b.report.rows_rejected);
  EXPECT_EQ(a.report.rows_skipped, b.report.rows_skipped);
  EXPECT_EQ(a.report.bytes_written, b.report.bytes_written);
  EXPECT_EQ(a.report.restarts, b.report.restarts);
  EXPECT_EQ(a.report.fraction, b.report.fraction);
  EXPECT_EQ(a.report.facts, b.report.facts);
  EXPECT_EQ(a.report.warnings, b.report.warnings);
}

TEST(CheckpointCodecTest, EveryFieldComesBack) {
  for (bool final : {false, true}) {
    auto state = FullState();
    state.final = final;
    auto bytes = EncodeCheckpoint(state).ValueOrDie();
    auto back = DecodeCheckpoint(bytes, "x");
    ASSERT_TRUE(back.ok()) << back.status();
    ExpectEqual(state, *back);
    EXPECT_TRUE(back->schema->Equals(*state.schema));
    EXPECT_EQ(bytes, EncodeCheckpoint(*back).ValueOrDie());
  }
}

TEST(CheckpointCodecTest, GoldenBytes) {
  auto state = FullState();
  state.planned = false;
  state.schema = nullptr;  // Arrow's bytes are Arrow's to keep
  EXPECT_EQ(Hex(EncodeCheckpoint(state).ValueOrDie()),
            "48445243484b505401000000aa0000000000000008071207666c69676874731a08303132336162636422100a0466726f6d120862713a70"
            "2e642e7422090a02746f12036f7574300142370a0145121c0a160a0273301201441a01502201512900000000000004401001180412080a"
            "040a02733118051806200a280b300c3801400252014b5a0277305a027731620263306a2c080a1009180120032850300239000000000000"
            "e03f420c0a0773657373696f6e1201534a076361726566756c90910c23b59239f749e1ecdc9a6ed98bdfa1ebe73e9490204d60e565075f"
            "540a");
}

TEST(CheckpointCodecTest, TextsNeedNotBeUtf8) {
  auto state = FullState();
  state.job_name = state.configuration["to"] = state.report.facts["output"] = "/data/\xff\xfe";
  state.report.warnings = {"\x80"};
  auto back = DecodeCheckpoint(EncodeCheckpoint(state).ValueOrDie(), "x");
  ASSERT_TRUE(back.ok()) << back.status();
  ExpectEqual(state, *back);
}

TEST(CheckpointCodecTest, AnyDamageIsFound) {
  auto bytes = EncodeCheckpoint(FullState()).ValueOrDie();
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto status = DecodeCheckpoint(std::string_view(bytes).substr(0, size), "chk").status();
    ASSERT_EQ(CodeOf(status), Code::kDataLoss) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    auto damaged = bytes;
    damaged[at] ^= 0x20;
    auto status = DecodeCheckpoint(damaged, "chk").status();
    ASSERT_FALSE(status.ok()) << at;
    bool in_version = at >= 8 && at < 12;
    ASSERT_EQ(CodeOf(status), in_version ? Code::kUnimplemented : Code::kDataLoss) << at;
  }
  EXPECT_EQ(CodeOf(DecodeCheckpoint(bytes + "x", "chk").status()), Code::kDataLoss);
}

TEST(CheckpointCodecTest, AnotherVersionIsNamedBesideOurs) {
  auto bytes = EncodeCheckpoint(FullState()).ValueOrDie();
  bytes[8] = 9;
  auto status = DecodeCheckpoint(bytes, "/d/chk-0000000007").status();
  EXPECT_THAT(status.message(), HasSubstr("/d/chk-0000000007 has version 9; this program reads version 1"));
}

TEST(CheckpointCodecTest, AWrongMessageUnderARightChecksumIsDamageToo) {
  for (std::string payload : {"\xff\xff\xff\xff", "\x28\x01"}) {  // not a message; planned without a schema
    std::string bytes("HDRCHKPT\x01\0\0\0", 12);
    bytes.push_back(static_cast<char>(payload.size()));
    bytes.append(7, '\0');
    bytes += payload;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
    bytes.append(reinterpret_cast<const char*>(digest), sizeof(digest));
    EXPECT_EQ(CodeOf(DecodeCheckpoint(bytes, "chk").status()), Code::kDataLoss);
  }
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointState State(uint64_t checkpoint) {
    auto state = FullState();
    state.checkpoint = checkpoint;
    return state;
  }
  MemoryFiles files_;
  std::unique_ptr<CheckpointStore> store_ = CheckpointStore::Open(&files_, "/d").ValueOrDie();
};

TEST_F(CheckpointStoreTest, TheNewestFinalNameDecides) {
  EXPECT_FALSE(store_->Newest()->has_value());
  ASSERT_TRUE(store_->Write(State(2)).ok());
  ASSERT_TRUE(store_->Write(State(10)).ok());
  files_.Put("/d/.chk-0000000011.tmp", "half");
  files_.Put("/d/chk-11", "a name that we never write");
  auto newest = store_->Newest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ((*newest)->state.checkpoint, 10U);
  EXPECT_FALSE((*newest)->committed);
  ASSERT_TRUE(store_->RemoveLeftovers().ok());
  EXPECT_THAT(files_.Names("/d"), ElementsAre("chk-0000000002", "chk-0000000010", "chk-11"));
}

// Whoever looks without the lock may list a checkpoint that the running job removes before it is looked at.
TEST_F(CheckpointStoreTest, ACheckpointThatIsRemovedMeanwhileIsLookedForAgain) {
  ASSERT_TRUE(store_->Write(State(2)).ok());
  files_.EmptyLists(2);
  auto newest = ReadNewestCheckpoint(&files_, "/d");
  ASSERT_TRUE(newest.ok()) << newest.status();
  ASSERT_TRUE(newest->has_value());
  EXPECT_EQ((*newest)->state.checkpoint, 2U);
}

TEST_F(CheckpointStoreTest, ACommitIsRecordedAndRemovesWhatIsOlder) {
  ASSERT_TRUE(store_->Write(State(2)).ok());
  ASSERT_TRUE(store_->RecordCommitted(2).ok());
  ASSERT_TRUE(store_->Write(State(3)).ok());
  EXPECT_FALSE((*store_->Newest())->committed) << "the record is another checkpoint's";
  EXPECT_THAT(files_.Names("/d"), ElementsAre("chk-0000000002", "chk-0000000002.committed", "chk-0000000003"));
  ASSERT_TRUE(store_->RecordCommitted(3).ok());
  EXPECT_THAT(files_.Names("/d"), ElementsAre("chk-0000000003", "chk-0000000003.committed"));
  EXPECT_TRUE((*store_->Newest())->committed);
  ASSERT_TRUE(store_->RecordFinished(3).ok());
  EXPECT_TRUE((*store_->Newest())->finished);
}

TEST_F(CheckpointStoreTest, ADamagedOrRenamedNewestIsNeverPassedOver) {
  ASSERT_TRUE(store_->Write(State(2)).ok());
  ASSERT_TRUE(store_->Write(State(3)).ok());
  ASSERT_TRUE(files_.Rename("/d/chk-0000000003", "/d/chk-0000000004", false).ok());
  EXPECT_EQ(CodeOf(store_->Newest().status()), Code::kDataLoss);
  files_.Put("/d/chk-0000000005", "");
  auto status = store_->Newest().status();
  EXPECT_EQ(CodeOf(status), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("chk-0000000005"));
  EXPECT_THAT(status.message(), HasSubstr("start the job anew"));
}

TEST_F(CheckpointStoreTest, ACheckpointIsNeverOverwritten) {
  ASSERT_TRUE(store_->Write(State(2)).ok());
  EXPECT_EQ(CodeOf(store_->Write(State(2))), Code::kAlreadyExists);
}

TEST_F(CheckpointStoreTest, TheLockGoesWithTheStore) {
  auto second = CheckpointStore::Open(&files_, "/d");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(GetErrorInfo(second.status())->reason, "LOCKED");
  store_.reset();
  EXPECT_TRUE(CheckpointStore::Open(&files_, "/d").ok());
}

}  // namespace
}  // namespace headrace::testing
