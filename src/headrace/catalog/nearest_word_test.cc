#include "headrace/catalog/nearest_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearestWord, IsNearEnoughOrNone) {
  struct Case {
    std::string_view word;
    std::optional<std::string_view> meant;
  };
  for (const Case& one : std::vector<Case>{
           {"arow", "arrow"},       // one left out
           {"arrrow", "arrow"},     // one too many
           {"parquat", "parquet"},  // one replaced
           {"apruqet", "parquet"},  // two swaps
           {"cvs", "csv"},          // a swap counts as one
           {"arrows", "arrows"},
           {"json", std::nullopt},
           {"cs", std::nullopt},  // a third of two letters is none
           {"", std::nullopt},
       }) {
    EXPECT_EQ(NearestWord(one.word, {"parquet", "arrow", "arrows", "csv"}), one.meant) << one.word;
  }
  EXPECT_EQ(NearestWord("abd", {"abc", "abe"}), "abc");
  EXPECT_EQ(NearestWord("abc", {}), std::nullopt);
}

TEST(NearestWord, WordsAndTheEndOfASentence) {
  EXPECT_THAT(SplitWords("none lz4 zstd"), ElementsAre("none", "lz4", "zstd"));
  EXPECT_THAT(SplitWords(""), IsEmpty());
  EXPECT_EQ(DidYouMean("zst", {"none", "zstd"}), ", did you mean zstd?");
  EXPECT_EQ(DidYouMean("brotli", {"none", "zstd"}), "");
}

}  // namespace
}  // namespace headrace::catalog
