// What is sent from the cache is what would have been encoded.
#include "headrace/local/response_cache.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/local/service_testing.h"

namespace headrace::local {
namespace {

TEST(ResponseCache, KeepsTheFirstUpToItsLimit) {
  ResponseCache cache(100);
  const ResponseKey key{.range = {0, 10}};
  EXPECT_FALSE(cache.Find(key).has_value());
  cache.Add(key, {.rows = 3, .bytes = 60});
  EXPECT_EQ(cache.Find(key)->rows, 3);
  cache.Add(key, {.rows = 4, .bytes = 30});
  EXPECT_EQ(cache.Find(key)->rows, 3) << "the first stays";
  cache.Add({.range = {0, 11}}, {.rows = 1, .bytes = 41});
  EXPECT_FALSE(cache.Find({.range = {0, 11}}).has_value()) << "there is no room";
  EXPECT_EQ(cache.bytes(), 60);
  cache.Add({.range = {0, 12}}, {.rows = 1, .bytes = 40});
  EXPECT_TRUE(cache.Find({.range = {0, 12}}).has_value());
  ResponseCache none(0);
  none.Add(key, {.rows = 1, .bytes = 1});
  EXPECT_FALSE(none.Find(key).has_value());
}

TEST(ResponseCache, EveryPartOfTheKeyCounts) {
  const ResponseKey key{.range = {0, 10}, .offset = 4};
  const std::vector<std::function<void(ResponseKey&)>> changes = {
      [](ResponseKey& k) { k.view = std::make_shared<ReadView>(); },
      [](ResponseKey& k) { k.range.begin = 1; },
      [](ResponseKey& k) { k.range.end = 9; },
      [](ResponseKey& k) { k.offset = 5; },
      [](ResponseKey& k) { k.has_schema = true; },
      [](ResponseKey& k) { k.avro = true; },
      [](ResponseKey& k) { k.precision = static_cast<TimestampPrecision>(static_cast<int>(k.precision) + 1); },
      [](ResponseKey& k) { k.buffer_compression = 1; },
      [](ResponseKey& k) { k.lz4 = true; }};
  ResponseCache cache(1000);
  cache.Add(key, {.rows = 1, .bytes = 1});
  for (size_t i = 0; i < changes.size(); ++i) {
    ResponseKey other = key;
    changes[i](other);
    EXPECT_FALSE(cache.Find(other).has_value()) << i;
  }
  EXPECT_TRUE(cache.Find(key).has_value());
}

class KeptResponsesTest : public ServiceTest {
 protected:
  static std::vector<std::string> Bytes(const Outcome& outcome) {
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    std::vector<std::string> bytes;
    for (const auto& message : outcome.messages) bytes.push_back(message.SerializeAsString());
    return bytes;
  }
  int64_t FromCache() { return Counters()["messages_from_cache"]; }
};

TEST_F(KeptResponsesTest, AreByteForByteWhatIsEncoded) {
  using Change = std::function<void(storage::ReadSession*)>;
  const std::vector<Change> forms = {
      [](storage::ReadSession*) {},
      [](storage::ReadSession* s) { s->set_data_format(storage::AVRO); },
      [](storage::ReadSession* s) {
        s->mutable_read_options()->mutable_arrow_serialization_options()->set_buffer_compression(
            storage::ArrowSerializationOptions::LZ4_FRAME);
      },
      [](storage::ReadSession* s) {
        s->mutable_read_options()->mutable_arrow_serialization_options()->set_buffer_compression(storage::ArrowSerializationOptions::ZSTD);
      },
      [](storage::ReadSession* s) {
        s->mutable_read_options()->set_response_compression_codec(storage::ReadSession::TableReadOptions::RESPONSE_COMPRESSION_CODEC_LZ4);
      },
      [](storage::ReadSession* s) { s->mutable_read_options()->add_selected_fields("id"); },
      [](storage::ReadSession* s) { s->mutable_read_options()->set_row_restriction("id > 7"); }};
  std::vector<std::vector<std::string>> expected;
  for (const bool cached : {false, true}) {
    ServiceOptions options = Options(60);
    if (cached) options.response_cache_bytes = 1 << 20;
    Start(std::move(options));
    // Twice, in sessions of their own: first everything is encoded, then nothing.
    for (int pass = 0; pass < 2; ++pass) {
      size_t at = 0;
      for (const Change& form : forms) {
        for (const int64_t offset : {0, 3, 8}) {
          auto request = Request(2);
          form(request.mutable_read_session());
          auto session = Session(request);
          for (const auto& stream : session.streams()) {
            auto bytes = Bytes(Receive(stream.name(), offset));
            if (!cached && pass == 0) {
              expected.push_back(bytes);
            } else {
              EXPECT_EQ(bytes, expected[at]) << at;
            }
            ++at;
          }
        }
      }
    }
    int64_t messages = 0;
    for (const auto& one : expected) messages += static_cast<int64_t>(one.size());
    // At least the second pass; forms that differ in nothing share theirs also in the first.
    if (cached) {
      EXPECT_GE(FromCache(), messages);
    } else {
      EXPECT_EQ(FromCache(), 0);
    }
  }
}

TEST_F(KeptResponsesTest, FaultsAndChangedTablesAreNotAnsweredFromThem) {
  ServiceOptions options = Options(20);
  options.response_cache_bytes = 1 << 20;
  Start(std::move(options));
  const std::string stream = Session(Request()).streams(0).name();
  const auto good = Bytes(Receive(stream));
  SetFaults(R"({"method":"ReadRows","times":1,"after_messages":1,"action":{"row_count_off_by":2}})");
  const auto faulty = Receive(stream);
  ASSERT_EQ(faulty.messages.size(), good.size());
  EXPECT_EQ(faulty.messages[1].row_count(), 6);
  SetFaults("");
  EXPECT_EQ(Bytes(Receive(stream)), good) << "what a fault touched was not kept";
  SetFaults(R"({"method":"ReadRows","times":1,"after_messages":1,"action":{"skip":true}},
               {"method":"ReadRows","times":1,"after_messages":2,"action":{"duplicate":true}})");
  const auto skipped = Bytes(Receive(stream));
  EXPECT_EQ(skipped.size(), good.size());
  EXPECT_EQ(skipped[1], good[2]);
  EXPECT_EQ(skipped[2], good[2]);
}

}  // namespace
}  // namespace headrace::local
