#include "headrace/catalog/option_table.h"

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/catalog/nearest_word.h"
#include "headrace/catalog/option_value.h"

namespace headrace::catalog {
namespace {

using ::testing::HasSubstr;

TEST(OptionTable, NamesAreUniqueAndInLibraryForm) {
  std::set<std::string_view> seen;
  for (const Option& option : Options()) {
    EXPECT_TRUE(seen.insert(option.name).second) << option.name;
    EXPECT_EQ(option.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << option.name;
    EXPECT_EQ(LibraryName(CommandLineName(option.name)), option.name);
    EXPECT_EQ(FindOption(option.name), &option);
  }
}

TEST(OptionTable, EveryRowIsComplete) {
  for (const Option& option : Options()) {
    SCOPED_TRACE(option.name);
    EXPECT_FALSE(option.help.empty());
    EXPECT_FALSE(option.default_text.empty());
    EXPECT_FALSE(option.group.empty());
    EXPECT_NE(option.places, 0u);
    EXPECT_NE(option.verbs, 0u);
    EXPECT_EQ(CheckValue(option, option.example), arrow::Status::OK());
    EXPECT_FALSE(option.hidden && option.common);
  }
}

/// Whether `word` stands in `text`, not as a part of a longer word.
bool HasWord(std::string_view text, std::string_view word) {
  constexpr std::string_view kWordCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  auto inside = [&](size_t at) { return at < text.size() && kWordCharacters.find(text[at]) != std::string_view::npos; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !inside(at - 1)) && !inside(at + word.size())) return true;
  }
  return false;
}

TEST(OptionTable, WordsAreOfTextOptionsAndInTheirHelp) {
  for (const Option& option : Options()) {
    SCOPED_TRACE(option.name);
    if (option.words.empty() && option.path == PathHint::kNone) continue;
    EXPECT_EQ(option.kind, OptionKind::kText);
    for (std::string_view word : SplitWords(option.words)) {
      EXPECT_TRUE(HasWord(option.help, word) || option.default_text == word) << word;
      EXPECT_EQ(CheckValue(option, word), arrow::Status::OK());
    }
    EXPECT_EQ(CheckValue(option, "no such word").ok(), !option.takes_only_words());
  }
}

TEST(OptionTable, NearestNameOrNone) {
  EXPECT_EQ(NearestOption("row_restrictions", kCopy), "row_restriction");
  EXPECT_EQ(NearestOption("reader", kCopy), "readers");
  EXPECT_EQ(NearestOption("fromat", kCopy), "format") << "swapped neighbours are one mistake";
  EXPECT_EQ(NearestOption("max_streams_count", kCopy), "max_stream_count");
  EXPECT_EQ(NearestOption("qwertz", kCopy), std::nullopt);
  EXPECT_EQ(NearestOption("", kCopy), std::nullopt);
  EXPECT_EQ(NearestOption("grpc_prot", kCopy), std::nullopt) << "an option of another verb is no help";
  EXPECT_EQ(NearestOption("fail_pont", kCopy), std::nullopt) << "hidden options are never suggested";
}

TEST(OptionTable, RefusalsSayWhatIsMeantOrWhereItApplies) {
  EXPECT_THAT(RefuseOption("row_restrictoin", kCopy).message(), HasSubstr("did you mean --row-restriction?"));
  EXPECT_THAT(RefuseOption("load", kCopy).message(), HasSubstr("--load does not apply to copy, only to: serve"));
  EXPECT_THAT(RefuseOption("row_restriction", kResume).message(), HasSubstr("fixed when a job starts"));
  EXPECT_THAT(RefuseOption("zzzzzz", kCopy).message(), HasSubstr("there is no option --zzzzzz; 'headrace copy --help-all'"));
  // An option of BigQuery's that is known but not built is refused by name, not as a spelling mistake.
  EXPECT_THAT(RefuseOption("query", kCopy).message(), HasSubstr("query"));
  EXPECT_EQ(GetErrorInfo(RefuseOption("query", kCopy))->reason, "UNSUPPORTED");
}

/// The row of docs/options.md that an option must have.
std::string ManualRow(const Option& option) {
  std::string_view value = ValueName(option);
  // A flag stands there without a value.
  const std::string example = option.kind == OptionKind::kFlag ? CommandLineName(option.name) : std::string(option.example);
  return fmt::format("| `{}` | `{}{}{}` | {} | {} | {} | {} | `{}` |", option.name, CommandLineName(option.name), value.empty() ? "" : " ",
                     value, option.default_text, option.help, PlacesText(option.places), VerbsText(option.verbs), example);
}

TEST(OptionTable, TheManualHasEveryOptionAndNoOther) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/docs/options.md");
  ASSERT_TRUE(file) << "docs/options.md is missing";
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `") && line.find("` | `--") != std::string::npos) rows.insert(line);
  }
  std::string missing;
  for (const Option& option : Options()) {
    if (!option.hidden && rows.erase(ManualRow(option)) == 0) missing += ManualRow(option) + "\n";
  }
  EXPECT_EQ(missing, "") << "docs/options.md lacks these rows";
  EXPECT_THAT(rows, ::testing::IsEmpty()) << "docs/options.md has rows that no option has";
}

}  // namespace
}  // namespace headrace::catalog
