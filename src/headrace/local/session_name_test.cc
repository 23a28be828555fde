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
