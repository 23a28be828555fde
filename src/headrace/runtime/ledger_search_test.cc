// Every order in which readers, writers, cuts, failures, checkpoints and crashes can follow one another on four rows, driven through the
// real Ledger; and random orders on more rows. Each mutation of ledger_world_testing.h must be found, or the tests prove nothing.
//
// The Ledger itself was broken by hand as well and seen to fail here: Snapshot without the assigned splits; HandBack with an empty
// position, or that loses the split, or leaves it assigned too; Cut that keeps the near descriptor, or loses the far part; Advance that
// does not push, or does not move the position; Restore that drops the assigned splits. What single steps cannot see, ledger_test.cc does:
// a barrier placed or a batch pushed outside of the lock, a lost wake-up, successors lost, an end of all splits announced while one is
// held.
#include <random>
#include <unordered_set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "headrace/runtime/ledger_world_testing.h"

namespace headrace::testing {
namespace {

struct Found {
  size_t states = 0;
  std::optional<std::string> wrong{};
};

/// Visits every state once. A World cannot be copied (its Ledger is the real one), so that each is reached by its path from the beginning.
Found Search(const WorldOptions& options) {
  struct State {
    size_t parent;
    Action action;
  };
  std::vector<State> states{{0, {}}};
  std::unordered_set<std::string> seen{World(options).Key()};
  Found found;
  auto path_to = [&](size_t index) {
    std::vector<Action> path;
    for (; index != 0; index = states[index].parent) path.push_back(states[index].action);
    std::reverse(path.begin(), path.end());
    return path;
  };
  auto explain = [&](std::vector<Action> path, const Action* last, const std::string& wrong) {
    std::string text = wrong;
    if (last != nullptr) path.push_back(*last);
    for (const auto& action : path) text += "\n  " + action.ToString();
    return text;
  };
  for (size_t next = 0; next < states.size(); ++next) {
    auto path = path_to(next);
    auto replay = [&] {
      auto world = std::make_unique<World>(options);
      for (const auto& action : path) (void)world->Take(action);
      return world;
    };
    auto world = replay();
    auto enabled = world->Enabled();
    found.states = states.size();
    if (enabled.empty() && (found.wrong = world->CheckDone())) {
      found.wrong = explain(path, nullptr, *found.wrong);
      return found;
    }
    for (size_t i = 0; i < enabled.size(); ++i) {
      if (i > 0) world = replay();
      if (auto wrong = world->Take(enabled[i])) {
        found.wrong = explain(path, &enabled[i], *wrong);
        return found;
      }
      if (seen.insert(world->Key()).second) states.push_back({next, enabled[i]});
    }
  }
  found.states = states.size();
  return found;
}

/// One walk, the order of whose steps follows from `seed` alone.
std::optional<std::string> Walk(const WorldOptions& options, uint64_t seed) {
  std::mt19937_64 random(seed);
  World world(options);
  std::vector<Action> path;
  while (true) {
    auto enabled = world.Enabled();
    std::optional<std::string> wrong;
    if (enabled.empty()) {
      wrong = world.CheckDone();
      if (!wrong) return std::nullopt;
    } else {
      // Rows are many and failures few: without weight on the usual steps most walks would spend their crashes at once.
      auto action = enabled[random() % enabled.size()];
      bool rare = action.kind == Action::Kind::kCrash || action.kind == Action::Kind::kFail || action.kind == Action::Kind::kAnswerCut;
      if (rare && random() % 8 != 0) continue;
      path.push_back(action);
      wrong = world.Take(action);
    }
    if (!wrong) continue;
    std::string text = fmt::format("seed {}: {}", seed, *wrong);
    for (const auto& step : path) text += "\n  " + step.ToString();
    return text;
  }
}

struct Case {
  const char* name;
  WorldOptions options;
};

std::vector<Case> Cases() {
  return {
      {"one split, two readers, cut, checkpoint", {.splits = {{0, 4}}, .cuts = 1, .failures = 0, .checkpoints = 1, .crashes = 0}},
      {"one split, cut, failure, checkpoint", {.splits = {{0, 4}}, .readers = 1, .cuts = 1, .failures = 1, .checkpoints = 1, .crashes = 0}},
      {"one split, two readers, failure, checkpoint", {.splits = {{0, 4}}, .cuts = 0, .failures = 1, .checkpoints = 1, .crashes = 0}},
      {"one split, cut, checkpoint, crash", {.splits = {{0, 4}}, .readers = 1, .cuts = 1, .failures = 0, .checkpoints = 1, .crashes = 1}},
      {"two splits, failure, crash", {.splits = {{0, 2}, {2, 4}}, .readers = 1, .cuts = 0, .failures = 1, .checkpoints = 1, .crashes = 1}},
      {"two splits, two readers, two writers",
       {.splits = {{0, 2}, {2, 4}}, .writers = 2, .cuts = 0, .failures = 0, .checkpoints = 1, .crashes = 0}},
      {"one split, two checkpoints, two crashes",
       {.splits = {{0, 4}}, .readers = 1, .cuts = 0, .failures = 0, .checkpoints = 2, .crashes = 2}},
  };
}

WorldOptions WalkOptions(Mutation mutation) {
  return {.splits = {{0, 6}, {6, 7}, {7, 7}, {7, 15}, {15, 20}},
          .readers = 3,
          .writers = 2,
          .cuts = 3,
          .failures = 3,
          .checkpoints = 5,
          .crashes = 2,
          .vary_on_crash = true,
          .mutation = mutation};
}

TEST(LedgerSearchTest, EveryOrderOfStepsKeepsEachRowOnce) {
  size_t states = 0;
  for (const auto& test : Cases()) {
    SCOPED_TRACE(test.name);
    auto found = Search(test.options);
    EXPECT_FALSE(found.wrong.has_value()) << *found.wrong;
    states += found.states;
  }
  RecordProperty("states", static_cast<int>(states));
  EXPECT_GT(states, 10'000U) << "the search is meant to be larger";
}

TEST(LedgerSearchTest, EveryMutationIsFound) {
  for (auto mutation : kAllMutations) {
    SCOPED_TRACE(NameOf(mutation));
    bool found = false;
    for (auto test : Cases()) {
      test.options.mutation = mutation;
      found = found || Search(test.options).wrong.has_value();
      if (found) break;
    }
    EXPECT_TRUE(found);
  }
}

TEST(LedgerSearchTest, RandomOrdersKeepEachRowOnce) {
  constexpr uint64_t kSeeds = 4'000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto wrong = Walk(WalkOptions(Mutation::kNone), seed);
    ASSERT_FALSE(wrong.has_value()) << *wrong;
  }
}

TEST(LedgerSearchTest, RandomOrdersFindEveryMutation) {
  constexpr uint64_t kSeeds = 2'000;
  for (auto mutation : kAllMutations) {
    SCOPED_TRACE(NameOf(mutation));
    bool found = false;
    for (uint64_t seed = 0; seed < kSeeds && !found; ++seed) found = Walk(WalkOptions(mutation), seed).has_value();
    EXPECT_TRUE(found);
  }
}

}  // namespace
}  // namespace headrace::testing
