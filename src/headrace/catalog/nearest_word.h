// The word that somebody who mistyped one probably meant.
//
// Free functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::catalog {

/// The candidate that is nearest to `word` if it is near enough to be meant: at most a third of the letters inserted, left out, replaced or
/// swapped with their neighbour. The first one when several are equally near.
std::optional<std::string_view> NearestWord(std::string_view word, const std::vector<std::string_view>& candidates);

/// "a b c" -> a, b, c: the form in which tables hold lists of words.
std::vector<std::string_view> SplitWords(std::string_view text);

/// ", did you mean arrow?", or nothing when none is near: the end of an error's sentence.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace headrace::catalog
