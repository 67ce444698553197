#include "actors/data_dispatcher/timeline_keeper.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::time_point;
using subject = repeats::subject;

namespace {

/// R20: beyond any rewind of the dead coordinator that may still be on its way.
constexpr std::uint64_t timelines_skipped = 1000;
constexpr auto why_parked = "its worker died on it again and again";

/// @returns what is left out now and was not before.
protocol::parked_slots_list park_in(journaled_course& course, const protocol::parked_slot& what,
                                    const slot_sizes& sizes) {
  return protocol::park(course.parked, what, sizes.records_of(what.step, what.slot), sizes.records_min);
}

/// What was evaluated of versions that a later timeline has left: an older journal has it still
/// (R41).
void drop_void(journaled_course& course) {
  std::erase_if(course.evaluations, [&](const auto& one) {
    const auto branch = branched_since(course.history, one.timeline);
    return branch && one.version > *branch;
  });
}

bool shows_pin(const protocol::durability_status& status, incarnation dispatcher, version_id version) {
  return status.has_pin && status.pinned_by == dispatcher && status.pinned == version;
}

} // namespace

timeline_keeper::timeline_keeper(timeline_keeper_config config, journaled_course course)
    : config_(std::move(config))
    , course_(std::move(course))
    , shards_(config_.ps_shards, config_.bug)
    , versions_({.self = config_.self,
                 .evaluations = std::exchange(config_.evaluations, {}),
                 .snapshots = {config_.durability, config_.steps, config_.max_recovery},
                 .repeat_after = config_.repeat_after,
                 .bug = config_.bug})
    , losses_({.self = config_.self,
               .ps_shards = config_.ps_shards,
               .couples = config_.couples,
               .slots_of = config_.sizes.slots_of,
               .repeat_after = config_.repeat_after})
    , repeats_(config_.repeat_after)
    , closed_(course_.course().ended) {
  DLRUN_CHECK(config_.durability != protocol::durability::off, "timelines of a job that keeps nothing");
  DLRUN_CHECK(config_.sizes.records_of != nullptr, "the keeper of timelines must know the shape of a step");
  versions_.set_results(course_.course().evaluations);
}

// ---- what it hears

void timeline_keeper::on_shard_status(const protocol::shard_status& status, time_point now,
                                      data_dispatcher_actions& out) {
  if (!is_valid(status.durable.history) || newest_timeline(status.durable.history) != status.timeline) return;
  shards_.note(status);
  losses_.on_shard(status);
  decide(now, out);
}

void timeline_keeper::on_kept(const protocol::kept& answer, time_point now, data_dispatcher_actions& out) {
  if (losses_.on_kept(answer, timeline())) decide(now, out);
}

void timeline_keeper::on_evaluated(const protocol::evaluated& result, data_dispatcher_actions& out) {
  if (course_.is_writing() || result.timeline != timeline() || !versions_.awaits(result.version)) return;
  auto course = course_.course();
  const auto at = std::find_if(course.evaluations.begin(), course.evaluations.end(),
                               [&](const auto& one) { return one.version > result.version; });
  course.evaluations.insert(at, result);
  course_.write(std::move(course), std::nullopt, out);
}

// ---- decisions

/// From state, again and again. Nothing is decided while a decision is on its way to the journal
/// (R15), nor before all shards have said where they stand.
void timeline_keeper::decide(time_point now, data_dispatcher_actions& out) {
  if (closed_ || course_.is_writing() || !shards_.all_reported()) return;
  const auto& shards = shards_.statuses();
  const bool behind = std::any_of(shards.begin(), shards.end(),
                                  [&](const auto& entry) { return entry.second.timeline > timeline(); });
  if (course_.course().lost || behind) return recover_course(out);
  if (bring_up(now, out) || park_what_waits(out) || go_back_when_pinned(now, out)) return;
  if (!going_back_ && !is_planted(config_.bug, planted_bug::no_probe)) // going back helps whoever is stuck
    if (const auto lost = losses_.look(shards, parked_slots(course_.course().history), now, out))
      return go_back_because(*lost, out);
  versions_.follow(shards_, timeline(), now, out);
}

/// R20, R41: the history of the highest timeline is the newest there is.
void timeline_keeper::recover_course(data_dispatcher_actions& out) {
  const auto& shards = shards_.statuses();
  const auto newest = std::max_element(shards.begin(), shards.end(), [](const auto& left, const auto& right) {
    return left.second.timeline < right.second.timeline;
  });
  auto course = course_.course();
  if (newest->second.timeline >= timeline()) course.history = newest->second.durable.history;
  drop_void(course);
  const auto parked = parked_slots(course.history);
  course.parked.insert(course.parked.end(), parked.begin(), parked.end());
  std::sort(course.parked.begin(), course.parked.end());
  course.parked.erase(std::unique(course.parked.begin(), course.parked.end()), course.parked.end());
  auto entry = next_entry(course.history, shards_.restorable(course.history).back().last);
  entry.timeline.value += timelines_skipped - 1;
  begin_timeline(std::move(course), std::move(entry), "the journal is lost, or older than the shards", out);
}

/// R16: shards on an older timeline. True while there are some.
bool timeline_keeper::bring_up(time_point now, data_dispatcher_actions& out) {
  bool some = false;
  for (const auto& [id, shard] : shards_.statuses()) {
    if (shard.timeline == timeline()) continue;
    some = true;
    const auto branch = *branched_since(course_.course().history, shard.timeline);
    if (branch.value > 0 && !contains(shard.durable.restorable, branch)) {
      go_back_because(fmt::format("ps_shard {} cannot go back to version {}", id, branch), out);
      return true;
    }
  }
  for (const auto& [id, shard] : shards_.statuses())
    if (shard.timeline != timeline()) send_rewind_to(id, now, out);
  return some;
}

void timeline_keeper::send_rewind_to(ps_shard_id shard, time_point now, data_dispatcher_actions& out) {
  const auto& history = course_.course().history;
  const auto branch = branched_since(history, shards_.statuses().at(shard).timeline);
  if (branch && repeats_.is_due(subject::rewind, protocol::ps_shard_role(shard), timeline().value, now))
    out.emplace_back(to_ps_shard{shard, protocol::rewind{timeline(), *branch, history}});
}

// ---- slots that are left out

void timeline_keeper::park(const protocol::parked_slot& slot, time_point now, data_dispatcher_actions& out) {
  to_park_.insert(slot);
  decide(now, out);
}

/// True while a slot is on its way to the journal.
bool timeline_keeper::journal_parked(data_dispatcher_actions& out) {
  auto course = course_.course();
  for (const auto& slot : std::exchange(to_park_, {})) {
    if (course.parked.size() + 2 > protocol::parked_slots_max) { // with one comes the whole slot, maybe
      out.emplace_back(decision_made{
          "parking-refused", fmt::format("{} slots or records are left out already", course.parked.size())});
      break;
    }
    for (const auto& added : park_in(course, slot, config_.sizes))
      out.emplace_back(decision_made{"slot-parked", fmt::format("{} is left out of the training: {}",
                                                                protocol::describe(added), why_parked)});
  }
  if (course.parked == course_.course().parked) return false;
  course_.write(std::move(course), std::nullopt, out);
  return true;
}

/// R18: parking is going back to before the slot's step. True when it does.
bool timeline_keeper::park_what_waits(data_dispatcher_actions& out) {
  if (journal_parked(out)) return true;
  const auto& known = course_.course();
  const auto parked = parked_slots(known.history);
  std::vector<protocol::parked_slot> waiting;
  std::set_difference(known.parked.begin(), known.parked.end(), parked.begin(), parked.end(),
                      std::back_inserter(waiting));
  if (waiting.empty()) return false;
  if (is_planted(config_.bug, planted_bug::park_in_place)) {
    auto course = known;
    course.history.back().parked.insert(course.history.back().parked.end(), waiting.begin(), waiting.end());
    for (const auto& [id, shard] : shards_.statuses())
      out.emplace_back(
          to_ps_shard{id, protocol::rewind{timeline(), course.history.back().branch, course.history}});
    course_.write(std::move(course), std::nullopt, out);
    return true;
  }
  const auto branch = greatest_up_to(shards_.restorable(known.history), version_before(waiting.front().step));
  auto entry = next_entry(known.history, *branch);
  entry.parked = waiting;
  begin_timeline(known, std::move(entry), fmt::format("{} is left out", protocol::describe(waiting.front())),
                 out);
  return true;
}

// ---- the operator

bool timeline_keeper::go_back(const wanted_change& wanted, time_point now, data_dispatcher_actions& out) {
  if (wanted.revision <= course_.course().history.back().revision) return true; // told again
  if (closed_) {
    out.emplace_back(decision_made{"going-back-refused", "the job is over"});
    return false;
  }
  going_back_ = going_back{wanted, std::nullopt};
  const auto& parked = course_.course().parked;
  for (const auto& slot : wanted.skip) // one that is to be left out must be ahead
    if (!std::binary_search(parked.begin(), parked.end(), slot))
      going_back_->wanted.from = std::min(going_back_->wanted.from, version_before(slot.step));
  decide(now, out);
  return true;
}

/// R16a: a floor may be on its way, so the version is pinned first. True when it goes back now.
bool timeline_keeper::go_back_when_pinned(time_point now, data_dispatcher_actions& out) {
  if (!going_back_) return false;
  const auto can = shards_.restorable(course_.course().history);
  if (!going_back_->version || !contains(can, *going_back_->version))
    going_back_->version = greatest_up_to(can, going_back_->wanted.from);
  const auto version = *going_back_->version;
  bool pinned = true;
  for (const auto& [id, shard] : shards_.statuses()) {
    if (shows_pin(shard.durable, config_.self, version)) continue;
    pinned = false;
    if (repeats_.is_due(subject::pin, protocol::ps_shard_role(id), version.value, now))
      out.emplace_back(to_ps_shard{id, protocol::pin{timeline(), config_.self, version}});
  }
  if (!pinned && !is_planted(config_.bug, planted_bug::undo_unpinned)) return false;
  auto course = course_.course();
  auto entry = next_entry(course.history, version);
  entry.revision = going_back_->wanted.revision;
  for (const auto& slot : going_back_->wanted.skip) {
    const auto added = park_in(course, slot, config_.sizes);
    entry.parked.insert(entry.parked.end(), added.begin(), added.end());
  }
  begin_timeline(std::move(course), std::move(entry), "the operator goes back", out);
  return true;
}

// ---- the journal

void timeline_keeper::go_back_because(std::string reason, data_dispatcher_actions& out) {
  const auto& course = course_.course();
  begin_timeline(course, next_entry(course.history, shards_.restorable(course.history).back().last),
                 std::move(reason), out);
}

/// R15, R16: the journal first. What was evaluated beyond the branch is void (R17).
void timeline_keeper::begin_timeline(journaled_course course, protocol::timeline_entry entry,
                                     std::string reason, data_dispatcher_actions& out) {
  std::uint64_t highest = entry.branch.value;
  for (const auto& [id, shard] : shards_.statuses()) highest = std::max(highest, shard.applied.value);
  const bool on_purpose = entry.revision != course.history.back().revision;
  const protocol::timeline_started start{entry.timeline, entry.branch, highest - entry.branch.value,
                                         std::move(reason), on_purpose};
  std::erase_if(course.evaluations, [&](const auto& one) { return one.version > entry.branch; });
  course.history = extended(std::move(course.history), std::move(entry));
  course.lost = false;
  if (is_planted(config_.bug, planted_bug::late_journal))
    for (const auto& [id, shard] : shards_.statuses())
      out.emplace_back(to_ps_shard{
          id, protocol::rewind{start.timeline,
                               branched_since(course.history, shard.timeline).value_or(start.branch),
                               course.history}});
  course_.write(std::move(course), start, out);
}

void timeline_keeper::on_journaled(std::uint64_t id, time_point now, data_dispatcher_actions& out) {
  const auto done = course_.on_journaled(id);
  if (!done) return;
  const auto& evaluations = course_.course().evaluations;
  versions_.set_results(evaluations);
  if (const auto& start = done->start) {
    losses_.restart();
    versions_.restart();
    going_back_.reset();
    out.emplace_back(decision_made{
        "rewind",
        fmt::format("timeline {} goes on from version {}: {}", start->timeline, start->branch, start->reason),
        true});
    out.emplace_back(to_coordinator{*start});
  }
  auto before = done->before.evaluations.begin(); // both ascend by version
  for (const auto& one : evaluations) {
    while (before != done->before.evaluations.end() && before->version < one.version) ++before;
    if (before == done->before.evaluations.end() || *before != one) out.emplace_back(to_coordinator{one});
  }
  decide(now, out);
}

// ---- the end

std::optional<protocol::evaluate> timeline_keeper::evaluation_due() const {
  if (course_.is_writing() || !shards_.all_on(timeline())) return std::nullopt;
  const auto version = versions_.to_evaluate(shards_);
  return version ? std::optional(protocol::evaluate{timeline(), *version}) : std::nullopt;
}

bool timeline_keeper::finished() const {
  const auto& course = course_.course();
  if (course_.is_writing() || going_back_ || course.lost || !shards_.all_on(timeline())) return false;
  if (!to_park_.empty() || parked_slots(course.history) != course.parked) return false;
  return versions_.is_complete(shards_);
}

bool timeline_keeper::close(timeline_id wanted) {
  closed_ = closed_ || (wanted == timeline() && finished());
  return closed_ && wanted == timeline();
}

} // namespace dlrun::data_dispatcher
