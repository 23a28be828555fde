#include "headrace/catalog/nearest_word.h"

#include <algorithm>

#include <fmt/format.h>

namespace headrace::catalog {
namespace {

/// Levenshtein distance in which swapped neighbours, the commonest slip of fingers, count as one change. Words are short, so three rows of
/// the table do.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> NearestWord(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> nearest;
  size_t best = word.size() / 3 + 1;  // the first distance that is too far
  for (std::string_view candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (longer >= best) continue;  // so many letters at least are inserted or left out
    const size_t distance = EditDistance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    size_t space = text.find(' ');
    words.push_back(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return words;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates) {
  auto nearest = NearestWord(word, candidates);
  return nearest ? fmt::format(", did you mean {}?", *nearest) : "";
}

}  // namespace headrace::catalog
