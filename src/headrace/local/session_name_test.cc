#include "headrace/local/session_name.h"

#include <gtest/gtest.h>

namespace headrace::local {
namespace {

SessionState Example() {
  SessionState state;
  state.set_table("p.d.t");
  state.add_selected_fields("a");
  state.set_row_restriction("a > 1");
  state.set_stream_count(2);
  state.set_creation_micros(1'700'000'000'000'000);
  state.set_nonce(7);
  return state;
}

TEST(SessionNameTest, ComesBackWhole) {
  std::string name = FormatStreamName(FormatSessionName("p", Example()), 1);
  EXPECT_TRUE(name.starts_with("projects/p/locations/local/sessions/"));
  auto parsed = ParseStreamName(name);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->project, "p");
  EXPECT_EQ(parsed->index, 1);
  EXPECT_EQ(parsed->session.SerializeAsString(), Example().SerializeAsString());
}

// The form is documented and outlives a release: golden text, version 1.
TEST(SessionNameTest, GoldenBytes) {
  SessionState state;
  state.set_table("p.d.t");
  state.set_stream_count(1);
  auto parsed = ParseStreamName(FormatStreamName(FormatSessionName("p", state), 0));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(FormatSessionName("p", state), "projects/p/locations/local/sessions/AQoFcC5kLnQoATx2o_4KMf4b");
}

TEST(SessionNameTest, EveryChangedCharacterIsNotFound) {
  std::string name = FormatStreamName(FormatSessionName("p", Example()), 1);
  size_t begin = name.find("sessions/") + 9;
  size_t end = name.find("/streams/");
  for (size_t i = begin; i < end; ++i) {
    std::string changed = name;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(CodeOf(ParseStreamName(changed).status()), Code::kNotFound) << i;
    std::string shorter = name;
    shorter.erase(i, 1);
    EXPECT_EQ(CodeOf(ParseStreamName(shorter).status()), Code::kNotFound) << i;
  }
}

SessionState TwentyRows() {
  SessionState state = Example();
  state.set_table_rows(20);
  return state;
}

TEST(SessionNameTest, PartsComeBackWhole) {
  std::string session = FormatSessionName("p", TwentyRows());
  for (StreamPart part : {StreamPart::kPrimary, StreamPart::kRemainder}) {
    auto parsed = ParseStreamName(FormatPartName(session, 1, part, {12, 15}));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->session_name, session);
    EXPECT_EQ(parsed->index, 1);
    EXPECT_EQ(parsed->part, part);
    EXPECT_EQ(parsed->rows, (RowRange{12, 15}));
  }
  auto original = ParseStreamName(FormatStreamName(session, 1));
  ASSERT_TRUE(original.ok());
  EXPECT_EQ(original->session_name, session);
  EXPECT_EQ(original->part, StreamPart::kOriginal);
  EXPECT_EQ(original->rows, (RowRange{10, 20}));
}

// The form is documented: golden text.
TEST(SessionNameTest, GoldenPart) {
  SessionState state;
  state.set_table("p.d.t");
  state.set_stream_count(1);
  state.set_table_rows(100);
  std::string session = FormatSessionName("p", state);
  EXPECT_EQ(FormatPartName(session, 0, StreamPart::kPrimary, {0, 50}), session + "/streams/0.primary.0-50.9JEcvlLb3D8");
}

TEST(SessionNameTest, ForgedPartsAreNotFound) {
  std::string session = FormatSessionName("p", TwentyRows());
  SessionState other = TwentyRows();
  other.set_nonce(8);
  std::string name = FormatPartName(session, 1, StreamPart::kRemainder, {12, 15});
  std::string id = name.substr(session.size());
  std::vector<std::string> forged = {FormatSessionName("p", other) + id,
                                     session + id + ".x",
                                     session + "/streams/1.",
                                     session + "/streams/1.primary",
                                     session + "/streams/1.primary.12-15",
                                     session + "/streams/1.remainder.12-15."};
  for (size_t i = session.size() + std::string("/streams/").size(); i < name.size(); ++i) {
    for (char c : {'0', '1', 'A', 'B', '-', '.'}) {
      if (name[i] == c) continue;
      forged.push_back(name);
      forged.back()[i] = c;
    }
    forged.push_back(name);
    forged.back().erase(i, 1);
  }
  // Their checksum is right, and the rows are not the stream's.
  const RowRange kWrong[] = {{9, 15}, {12, 21}, {15, 12}, {12, 12}, {-1, 15}, {0, 20}};
  for (const RowRange& rows : kWrong) forged.push_back(FormatPartName(session, 1, StreamPart::kPrimary, rows));
  forged.push_back(FormatPartName(session, 2, StreamPart::kPrimary, {12, 15}));
  forged.push_back(FormatPartName(session, 1, StreamPart::kOriginal, {12, 15}));
  for (const std::string& one : forged) EXPECT_EQ(CodeOf(ParseStreamName(one).status()), Code::kNotFound) << one;
}

TEST(SessionNameTest, StreamsCoverTheTableWithoutOverflow) {
  SessionState state;
  for (int64_t rows : {int64_t{0}, int64_t{1}, int64_t{20}, INT64_MAX}) {
    for (int count : {1, 3, 7, 1000, INT32_MAX}) {
      state.set_table_rows(rows);
      state.set_stream_count(count);
      EXPECT_EQ(StreamRows(state, 0).begin, 0);
      EXPECT_EQ(StreamRows(state, count - 1).end, rows);
      EXPECT_EQ(StreamRows(state, 0).end, StreamRows(state, count > 1 ? 1 : 0).begin + (count > 1 ? 0 : rows));
    }
  }
  state.set_table_rows(-5);
  state.set_stream_count(1);
  EXPECT_EQ(CodeOf(ParseStreamName(FormatStreamName(FormatSessionName("p", state), 0)).status()), Code::kNotFound);
}

TEST(SessionNameTest, Foreign) {
  std::string session = FormatSessionName("p", Example());
  std::string tail = session.substr(session.find("/locations"));
  struct Case {
    std::string name;
    Code code;
  };
  const Case kCases[] = {
      {"", Code::kInvalidArgument},
      {"projects", Code::kInvalidArgument},
      {session, Code::kInvalidArgument},
      {session + "/streams/", Code::kInvalidArgument},
      {session + "/streams/0/x", Code::kInvalidArgument},
      {"projects//locations/local/sessions/x/streams/0", Code::kInvalidArgument},
      {"projects/p/locations/us/sessions/CAISDE/streams/GgJxdQ", Code::kNotFound},
      {"projects/p/locations/local/sessions/!/streams/0", Code::kNotFound},
      {"projects/p/locations/local/sessions/AQ/streams/0", Code::kNotFound},
      {"projects/q" + tail + "/streams/0", Code::kNotFound},
      {session + "/streams/2", Code::kNotFound},
      {session + "/streams/-1", Code::kNotFound},
      {session + "/streams/01", Code::kNotFound},
      {session + "/streams/x", Code::kNotFound},
  };
  for (const Case& c : kCases) EXPECT_EQ(CodeOf(ParseStreamName(c.name).status()), c.code) << c.name;
}

}  // namespace
}  // namespace headrace::local
