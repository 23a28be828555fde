#include "headrace/runtime/ledger_world_testing.h"

#include <algorithm>

#include <fmt/format.h>

namespace headrace::testing {
namespace {

constexpr int64_t kMarker = -1;

std::string PositionText(int64_t row) { return fmt::format("{}", row); }

}  // namespace

const char* NameOf(Mutation mutation) {
  switch (mutation) {
    case Mutation::kNone:
      return "none";
    case Mutation::kCutAppliedLate:
      return "cut applied late";
    case Mutation::kFarPartAfterEnd:
      return "far part in a step of its own";
    case Mutation::kHandBackConsumed:
      return "handed back at the consumed position";
    case Mutation::kHandBackReceived:
      return "handed back at the received position";
    case Mutation::kPositionBeforeEnqueue:
      return "position advanced before the batch is queued";
    case Mutation::kEnqueueBeforePosition:
      return "batch queued before the position is advanced";
    case Mutation::kEnumeratorBeforeReaders:
      return "enumerator copied before the readers";
    case Mutation::kReadersBeforeEnumerator:
      return "readers copied before the enumerator";
    case Mutation::kBarrierAfterCopy:
      return "barrier queued after the copy";
    case Mutation::kCommitBeforeDurable:
      return "commit before the state is durable";
    case Mutation::kNoCommitOnRestore:
      return "no commit on restore";
  }
  return "?";
}

std::string Action::ToString() const {
  constexpr const char* kNames[] = {
      "takes a split",          "receives a row",  "answers a row", "answers a cut",       "answers the end", "applies its answer",
      "applies the rest of it", "fails",           "barrier",       "rest of the barrier", "writer takes",    "checkpoint is durable",
      "checkpoint committed",   "commit recorded", "crash, restore"};
  return fmt::format("{} {} (at {})", who, kNames[static_cast<size_t>(kind)], at);
}

World::World(const WorldOptions& options) : options_(options) {
  std::vector<Split> splits;
  for (size_t i = 0; i < options.splits.size(); ++i) {
    splits.push_back(MakeRangeSplit(fmt::format("s{}", i), options.splits[i]));
    rows_ = std::max(rows_, options.splits[i].end);
  }
  visible_.assign(static_cast<size_t>(rows_), 0);
  taken_.assign(static_cast<size_t>(rows_), false);
  Open(std::move(splits));
}

void World::Open(std::vector<Split> queued) {
  if (options_.vary_on_crash && crashes_ > 0) {
    options_.readers = 1 + crashes_ % 3;
    options_.writers = 1 + crashes_ % 2;
  }
  auto writers = static_cast<size_t>(options_.writers);
  ledger_ = std::make_unique<Ledger>(std::make_unique<RangeEnumerator>(std::move(queued)), LedgerOptions{.writers = options_.writers});
  readers_.assign(static_cast<size_t>(options_.readers), {});
  queues_.assign(writers, {});
  uncommitted_.assign(writers, {});
  answered_.assign(writers, false);
  stage_ = Stage::kNone;
}

bool World::ReadersDone() const {
  auto state = ledger_->state();
  if (state.queued > 0 || state.assigned > 0) return false;
  return std::all_of(readers_.begin(), readers_.end(), [](const Reader& r) { return !r.held && r.rest.kind == Answer::Kind::kNone; });
}

void World::EnabledOf(size_t index, std::vector<Action>* actions) const {
  using Kind = Action::Kind;
  const auto& reader = readers_[index];
  auto who = static_cast<uint8_t>(index);
  bool rest = reader.rest.kind != Answer::Kind::kNone;
  // A late cut lets its reader go on; the other halves are steps of the same thread, which does nothing in between.
  if (rest) actions->push_back({Kind::kApplyRest, who});
  bool goes_on = options_.mutation == Mutation::kCutAppliedLate || options_.mutation == Mutation::kFarPartAfterEnd;
  if (rest && !goes_on) return;
  if (!reader.held) {
    if (!rest && ledger_->state().queued > 0) actions->push_back({Kind::kAssign, who});
    return;
  }
  if (reader.received < reader.end) actions->push_back({Kind::kReceive, who});
  if (reader.answer.kind != Answer::Kind::kNone) {
    actions->push_back({Kind::kApply, who});
    if (reader.answer.kind == Answer::Kind::kRow && failures_ < options_.failures) actions->push_back({Kind::kFail, who});
    return;
  }
  if (reader.next < reader.received) actions->push_back({Kind::kAnswerRow, who});
  if (reader.next == reader.end) actions->push_back({Kind::kAnswerEnd, who});
  if (cuts_ < options_.cuts && !rest) {
    // A source cuts behind what it has received, and leaves something on both sides.
    for (int64_t at = std::max(reader.received, reader.next + 1); at < reader.end; ++at) {
      actions->push_back({Kind::kAnswerCut, who, static_cast<uint8_t>(at)});
    }
  }
  if (failures_ < options_.failures && !rest) actions->push_back({Kind::kFail, who});
}

std::vector<Action> World::Enabled() const {
  using Kind = Action::Kind;
  std::vector<Action> actions;
  if (done_) return actions;
  for (size_t i = 0; i < readers_.size(); ++i) EnabledOf(i, &actions);
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (!queues_[i].empty()) actions.push_back({Kind::kWrite, static_cast<uint8_t>(i)});
  }
  bool early_commit = options_.mutation == Mutation::kCommitBeforeDurable;
  switch (stage_) {
    case Stage::kNone:
      if (checkpoints_ < options_.checkpoints || ReadersDone()) actions.push_back({Kind::kBarrier});
      break;
    case Stage::kHalfPlaced:
      actions.push_back({Kind::kBarrierRest});
      break;
    case Stage::kPlaced:
      break;
    case Stage::kAnswered:
      actions.push_back({early_commit ? Kind::kCommit : Kind::kPersist});
      break;
    case Stage::kDurable:
      actions.push_back({Kind::kCommit});
      break;
    case Stage::kCommitted:
      actions.push_back({early_commit ? Kind::kPersist : Kind::kRecord});
      break;
  }
  if (crashes_ < options_.crashes) actions.push_back({Kind::kCrash});
  return actions;
}

Split World::FarOf(const Split& split, int64_t at, int64_t end) const { return MakeRangeSplit(split.id + "/1", {at, end}); }

void World::Apply(Reader* reader) {
  auto answer = std::exchange(reader->answer, {});
  auto attempt = reader->held->attempt;
  auto* queue = &queues_[static_cast<size_t>(reader->held->writer)];
  auto& split = reader->held->split;
  auto keep_rest = [&](Answer rest) {
    reader->rest = rest;
    reader->rest_attempt = attempt;
    reader->rest_split = split;
    reader->rest_writer = reader->held->writer;
  };
  switch (answer.kind) {
    case Answer::Kind::kNone:
      break;
    case Answer::Kind::kRow: {
      auto push = [&] { queue->push_back(answer.value); };
      if (options_.mutation == Mutation::kEnqueueBeforePosition) {
        push();
        keep_rest(answer);
      } else if (options_.mutation == Mutation::kPositionBeforeEnqueue) {
        (void)ledger_->Advance(attempt, PositionText(answer.value + 1), {.rows = 1}, [] {});
        keep_rest(answer);
      } else {
        (void)ledger_->Advance(attempt, PositionText(answer.value + 1), {.rows = 1}, push);
      }
      break;
    }
    case Answer::Kind::kCut: {
      auto range = RangeOf(split);
      split.descriptor = fmt::format("{}-{}", range.begin, answer.value);
      Split far = FarOf(split, answer.value, range.end);
      if (options_.mutation == Mutation::kFarPartAfterEnd) {
        (void)ledger_->Cut(attempt, split.descriptor, {});
        keep_rest({Answer::Kind::kCut, range.end});
      } else if (options_.mutation == Mutation::kCutAppliedLate) {
        keep_rest({Answer::Kind::kCut, range.end});
      } else {
        (void)ledger_->Cut(attempt, split.descriptor, {far});
      }
      reader->end = answer.value;
      break;
    }
    case Answer::Kind::kEnd:
      (void)ledger_->End(attempt, {});
      reader->held.reset();
      break;
  }
}

void World::ApplyRest(Reader* reader) {
  auto rest = std::exchange(reader->rest, {});
  if (rest.kind == Answer::Kind::kRow) {
    if (options_.mutation == Mutation::kEnqueueBeforePosition) {
      (void)ledger_->Advance(reader->rest_attempt, PositionText(rest.value + 1), {.rows = 1}, [] {});
    } else {
      queues_[static_cast<size_t>(reader->rest_writer)].push_back(rest.value);
    }
  } else {
    int64_t at = RangeOf(reader->rest_split).end;
    (void)ledger_->Cut(reader->rest_attempt, reader->rest_split.descriptor, {FarOf(reader->rest_split, at, rest.value)});
  }
}

void World::HandBack(Reader* reader) {
  ++failures_;
  auto held = *std::exchange(reader->held, std::nullopt);
  reader->answer = {};
  auto range = RangeOf(held.split);
  if (options_.mutation == Mutation::kHandBackConsumed) {
    int64_t row = range.begin;
    while (row < range.end && taken_[static_cast<size_t>(row)]) ++row;
    held.split.position = PositionText(row);
    (void)ledger_->End(held.attempt, {held.split});
  } else if (options_.mutation == Mutation::kHandBackReceived) {
    held.split.position = PositionText(reader->received);
    (void)ledger_->End(held.attempt, {held.split});
  } else {
    (void)ledger_->HandBack(held.attempt);
  }
}

void World::PushMarkers() {
  for (auto& queue : queues_) queue.push_back(kMarker);
}

void World::PlaceBarrier() {
  pending_ = {};
  pending_.final = ReadersDone();
  ++checkpoints_;
  stage_ = Stage::kPlaced;
  std::fill(answered_.begin(), answered_.end(), false);
  switch (options_.mutation) {
    case Mutation::kEnumeratorBeforeReaders:
    case Mutation::kBarrierAfterCopy:
      pending_.ledger = ledger_->Snapshot([] {});
      stage_ = Stage::kHalfPlaced;
      break;
    case Mutation::kReadersBeforeEnumerator:
      pending_.ledger = ledger_->Snapshot([&] { PushMarkers(); });
      stage_ = Stage::kHalfPlaced;
      break;
    default:
      pending_.ledger = ledger_->Snapshot([&] { PushMarkers(); });
  }
}

void World::PlaceBarrierRest() {
  // The writers may have answered a marker that was placed with the first half.
  stage_ = std::find(answered_.begin(), answered_.end(), false) == answered_.end() ? Stage::kAnswered : Stage::kPlaced;
  if (options_.mutation == Mutation::kEnumeratorBeforeReaders) {
    auto second = ledger_->Snapshot([&] { PushMarkers(); });
    pending_.ledger.assigned = second.assigned;
    pending_.ledger.next_attempt = second.next_attempt;
  } else if (options_.mutation == Mutation::kReadersBeforeEnumerator) {
    pending_.ledger.enumerator = ledger_->Snapshot([] {}).enumerator;
  } else {
    PushMarkers();
  }
}

std::optional<std::string> World::WriteNext(size_t writer) {
  auto row = queues_[writer].front();
  queues_[writer].pop_front();
  if (row != kMarker) {
    uncommitted_[writer].push_back(row);
    taken_[static_cast<size_t>(row)] = true;
    return std::nullopt;
  }
  answered_[writer] = true;
  auto& rows = uncommitted_[writer];
  pending_.committable.insert(pending_.committable.end(), rows.begin(), rows.end());
  rows.clear();
  bool all = std::find(answered_.begin(), answered_.end(), false) == answered_.end();
  if (all && stage_ == Stage::kPlaced) stage_ = Stage::kAnswered;
  return std::nullopt;
}

std::optional<std::string> World::CheckCovered(const Checkpoint& checkpoint) const {
  std::vector<int> count = visible_;
  auto owe = [&](const Split& split) {
    for (int64_t row = NextRowOf(split); row < RangeOf(split).end; ++row) ++count[static_cast<size_t>(row)];
  };
  for (auto row : checkpoint.committable) ++count[static_cast<size_t>(row)];
  for (const auto& split : SplitsInSnapshot(checkpoint.ledger.enumerator)) owe(split);
  for (const auto& held : checkpoint.ledger.assigned) owe(held.split);
  for (size_t row = 0; row < count.size(); ++row) {
    if (count[row] != 1) return fmt::format("row {} counts {} times at a checkpoint", row, count[row]);
  }
  return std::nullopt;
}

std::optional<std::string> World::Persist() {
  if (stage_ == Stage::kCommitted) {  // mutated: committed first
    durable_ = pending_;
    committed_ = recorded_ = true;
    stage_ = Stage::kNone;
    done_ = durable_->final;
    return std::nullopt;
  }
  auto wrong = CheckCovered(pending_);
  durable_ = pending_;
  committed_ = recorded_ = false;
  stage_ = Stage::kDurable;
  return wrong;
}

void World::Commit(const Checkpoint& checkpoint) {
  for (auto row : checkpoint.committable) ++visible_[static_cast<size_t>(row)];
}

void World::Crash() {
  ++crashes_;
  auto start = durable_ ? durable_->ledger : LedgerSnapshot{};
  std::vector<Split> queued;
  if (durable_) {
    if (!committed_ && options_.mutation != Mutation::kNoCommitOnRestore) Commit(*durable_);
    committed_ = recorded_ = true;
    done_ = durable_->final;
    queued = SplitsInSnapshot(start.enumerator);
  } else {
    for (size_t i = 0; i < options_.splits.size(); ++i) queued.push_back(MakeRangeSplit(fmt::format("s{}", i), options_.splits[i]));
  }
  for (size_t row = 0; row < visible_.size(); ++row) taken_[row] = visible_[row] > 0;
  pending_ = {};
  Open(std::move(queued));
  ledger_->Restore(start);
}

std::optional<std::string> World::Take(const Action& action) {
  using Kind = Action::Kind;
  std::optional<std::string> wrong;
  auto* reader = action.who < readers_.size() ? &readers_[action.who] : nullptr;
  switch (action.kind) {
    case Kind::kAssign: {
      auto offer = ledger_->TryAssign();
      if (!offer.ok() || offer->kind != NextSplit::Kind::kSplit) return "a queued split is not handed out";
      auto range = RangeOf(offer->assigned.split);
      int64_t next = NextRowOf(offer->assigned.split);
      *reader = Reader{.held = offer->assigned, .end = range.end, .received = next, .next = next};
      break;
    }
    case Kind::kReceive:
      ++reader->received;
      break;
    case Kind::kAnswerRow:
      reader->answer = {Answer::Kind::kRow, reader->next++};
      break;
    case Kind::kAnswerCut:
      ++cuts_;
      reader->answer = {Answer::Kind::kCut, action.at};
      // The service ends the near part there from now on.
      reader->end = action.at;
      break;
    case Kind::kAnswerEnd:
      reader->answer = {Answer::Kind::kEnd, 0};
      break;
    case Kind::kApply:
      Apply(reader);
      break;
    case Kind::kApplyRest:
      ApplyRest(reader);
      break;
    case Kind::kFail:
      HandBack(reader);
      break;
    case Kind::kBarrier:
      PlaceBarrier();
      break;
    case Kind::kBarrierRest:
      PlaceBarrierRest();
      break;
    case Kind::kWrite:
      wrong = WriteNext(action.who);
      break;
    case Kind::kPersist:
      wrong = Persist();
      break;
    case Kind::kCommit:
      Commit(stage_ == Stage::kAnswered ? pending_ : *durable_);
      committed_ = stage_ != Stage::kAnswered;
      stage_ = Stage::kCommitted;
      break;
    case Kind::kRecord:
      recorded_ = true;
      stage_ = Stage::kNone;
      done_ = durable_->final;
      break;
    case Kind::kCrash:
      Crash();
      break;
  }
  if (wrong) return wrong;
  for (size_t row = 0; row < visible_.size(); ++row) {
    if (visible_[row] > 1) return fmt::format("row {} is visible {} times", row, visible_[row]);
  }
  return std::nullopt;
}

std::optional<std::string> World::CheckDone() const {
  if (!done_) return "nothing can happen, and the job is not done";
  for (size_t row = 0; row < visible_.size(); ++row) {
    if (visible_[row] != 1) return fmt::format("the job is done and row {} is visible {} times", row, visible_[row]);
  }
  return std::nullopt;
}

std::string World::Key() const {
  std::string key;
  auto number = [&](int64_t value) { key.push_back(static_cast<char>(value + 2)); };
  auto add_ledger = [&](const LedgerSnapshot& ledger) {
    key += ledger.enumerator;
    key.push_back('|');
    for (const auto& held : ledger.assigned) {  // attempt numbers only tell assignments apart
      key += held.split.id;
      key += held.split.descriptor;
      key.push_back('@');
      key += held.split.position;
      number(held.writer);
    }
    key.push_back('\n');
  };
  add_ledger(ledger_->Snapshot([] {}));
  for (const auto& reader : readers_) {
    key += reader.held ? reader.held->split.id : "-";
    for (auto value : {reader.held ? int64_t{reader.held->writer} : 0, reader.end, reader.received, reader.next}) number(value);
    for (const auto& answer : {reader.answer, reader.rest}) {
      number(static_cast<int64_t>(answer.kind));
      number(answer.value);
    }
    if (reader.rest.kind != Answer::Kind::kNone) key += reader.rest_split.descriptor;
  }
  for (const auto& queue : queues_) {
    for (auto row : queue) number(row);
    key.push_back('\n');
  }
  for (const auto& rows : uncommitted_) {
    auto sorted = rows;
    std::sort(sorted.begin(), sorted.end());
    for (auto row : sorted) number(row);
    key.push_back('\n');
  }
  for (bool answered : answered_) number(answered);
  for (const auto* checkpoint : {&pending_, durable_ ? &*durable_ : nullptr}) {
    if (checkpoint == nullptr || (checkpoint == &pending_ && stage_ == Stage::kNone)) {
      key.push_back('-');
      continue;
    }
    add_ledger(checkpoint->ledger);
    auto sorted = checkpoint->committable;
    std::sort(sorted.begin(), sorted.end());
    for (auto row : sorted) number(row);
    number(checkpoint->final);
  }
  for (int count : visible_) number(count);
  for (int value : {static_cast<int>(stage_), int{committed_}, int{recorded_}, cuts_, failures_, checkpoints_, crashes_, int{done_}})
    number(value);
  return key;
}

}  // namespace headrace::testing
