#include "headrace/cli/completion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/cli/verb_table.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

/// The part of a script about one verb: from its own branch to the next one's end.
std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  size_t start = text.find(from);
  if (start == std::string::npos) return "";
  return text.substr(start, text.find(to, start) - start);
}

TEST(Completion, EveryOptionOfAVerbAndNoOther) {
  const std::string bash = CompletionScript("bash");
  const std::string zsh = CompletionScript("zsh");
  const std::string fish = CompletionScript("fish");
  for (const VerbRow& row : Verbs()) {
    const std::string in_bash = Between(bash, fmt::format("\n    {})\n      options='", row.name), ";;");
    const std::string in_zsh = Between(zsh, fmt::format("\n    {})\n      _arguments", row.name), ";;");
    ASSERT_NE(in_bash, "");
    ASSERT_NE(in_zsh, "");
    EXPECT_THAT(fish, HasSubstr(fmt::format(" -a {} -d ", row.name)));
    for (const catalog::Option& option : catalog::Options()) {
      SCOPED_TRACE(fmt::format("{} {}", row.name, option.name));
      const bool takes = (option.verbs & row.bit) != 0 && !option.hidden;
      const std::string name = catalog::CommandLineName(option.name);
      const bool flag = option.kind == catalog::OptionKind::kFlag;
      EXPECT_EQ(in_bash.find(fmt::format("{} ", name)) != std::string::npos, takes);
      EXPECT_EQ(in_zsh.find(fmt::format("{}{}[", name, flag ? "" : "=")) != std::string::npos, takes);
      EXPECT_EQ(fish.find(fmt::format("_from {}' -l {} ", row.name, name.substr(2))) != std::string::npos, takes);
    }
  }
}

TEST(Completion, KnownWordsFilesAndDirectories) {
  EXPECT_THAT(CompletionScript("bash"), HasSubstr("'' 'parquet arrow arrows csv ndjson avro'"));
  EXPECT_THAT(CompletionScript("zsh"), HasSubstr(":TEXT:(parquet arrow arrows csv ndjson avro)'"));
  EXPECT_THAT(CompletionScript("zsh"), HasSubstr(":TEXT: _headrace_words_or_files adc none'"));
  EXPECT_THAT(CompletionScript("fish"), HasSubstr("-l format -r -f -a 'parquet arrow arrows csv ndjson avro'"));
  EXPECT_THAT(CompletionScript("fish"), HasSubstr("-l credentials -r -F -a 'adc none'"));
  EXPECT_THAT(CompletionScript("fish"), HasSubstr("-l checkpoint -r -f -a '(__fish_complete_directories)'"));
  EXPECT_THAT(CompletionScript("fish"), HasSubstr("-l csv-header -r -f -a 'true false'"));
  EXPECT_EQ(CompletionScript("tcsh"), "");
}

}  // namespace
}  // namespace headrace::cli
