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
/// Of the ids of one dispatcher's searches, so that no answer to another's is taken for its own.
constexpr int search_id_bits = 20;

constexpr auto why_parked = "its worker died on it again and again";

/// @returns what is left out now and was not before.
protocol::parked_slots_list park_in(journaled_course& course, const protocol::parked_slot& what,
                                    const slot_sizes& sizes) {
  return protocol::park(course.parked, what, sizes.records_of(what.step, what.slot), sizes.records_min);
}

bool shows_pin(const protocol::durability_status& status, incarnation dispatcher, version_id version) {
  return status.has_pin && status.pinned_by == dispatcher && status.pinned == version;
}

} // namespace

timeline_keeper::timeline_keeper(timeline_keeper_config config, journaled_course course)
    : config_(std::move(config))
    , course_(std::move(course))
    , book_(std::exchange(config_.evaluations, {}))
    , schedule_({config_.durability, config_.steps, config_.max_recovery})
    , repeats_(config_.repeat_after)
    , closed_(course_.ended) {
  DLRUN_CHECK(config_.durability != protocol::durability::off, "timelines of a job that keeps nothing");
  DLRUN_CHECK(config_.sizes.slots_of != nullptr && config_.sizes.records_of != nullptr,
              "the keeper of timelines must know the shape of a step");
  DLRUN_CHECK(is_valid(course_.history), "a journal has a history");
  book_.set_results(course_.evaluations);
}

// ---- what it hears
// -----------------------------------------------------------------------------------------------

void timeline_keeper::on_shard_status(const protocol::shard_status& status, time_point now,
                                      data_dispatcher_actions& out) {
  if (!is_valid(status.durable.history) || newest_timeline(status.durable.history) != status.timeline) return;
  shards_[status.shard] = status;
  if (is_planted(config_.bug, planted_bug::untagged_status))
    ever_reported_[status.shard].insert(status.durable.snapshots.begin(), status.durable.snapshots.end());
  if (search_) search_->on_shard(status);
  decide(now, out);
}

void timeline_keeper::on_shard_lost(ps_shard_id shard) { shards_.erase(shard); }

void timeline_keeper::set_workers(std::map<worker_id, incarnation> heard, bool all_known) {
  workers_ = std::move(heard);
  workers_are_known_ = all_known;
  if (search_) search_->keep_workers(workers_);
}

void timeline_keeper::on_kept(const protocol::kept& answer, time_point now, data_dispatcher_actions& out) {
  if (!search_) return;
  search_->on_kept(answer, timeline());
  decide(now, out);
}

void timeline_keeper::on_tick(time_point now, data_dispatcher_actions& out) { decide(now, out); }

// ---- what all have
// -----------------------------------------------------------------------------------------------

/// Nobody stands on another timeline than the newest.
bool timeline_keeper::everybody_is_here() const {
  return everybody_reported() && std::all_of(shards_.begin(), shards_.end(), [&](const auto& entry) {
           return entry.second.timeline == timeline();
         });
}

/// R14a. What a shard made on its timeline is good up to the lowest branch since.
protocol::version_set timeline_keeper::restorable_everywhere() const {
  std::optional<protocol::version_set> all;
  for (const auto& [id, shard] : shards_) {
    auto good = shard.durable.restorable;
    insert(good, {{0}, {0}});
    if (const auto branch = branched_since(course_.history, shard.timeline)) good = up_to(good, *branch);
    all = all ? common(*all, good) : good;
  }
  return *all;
}

/// With version 0, which needs no storage. Ascending.
std::vector<version_id> timeline_keeper::snapshots_everywhere() const {
  std::map<version_id, std::size_t> held;
  for (const auto& [id, shard] : shards_)
    for (const auto version : shard.durable.snapshots) ++held[version];
  if (is_planted(config_.bug, planted_bug::untagged_status)) {
    held.clear();
    for (const auto& [id, versions] : ever_reported_)
      for (const auto version : versions) ++held[version];
  }
  std::vector<version_id> all{{0}};
  for (const auto& [version, shards] : held)
    if (shards == config_.ps_shards && version.value > 0) all.push_back(version);
  return all;
}

// ---- decisions
// ---------------------------------------------------------------------------------------------------

/// From state, again and again. Nothing is decided while a decision is on its way to the journal
/// (R15), nor before all shards have said where they stand.
void timeline_keeper::decide(time_point now, data_dispatcher_actions& out) {
  if (closed_ || writing_ || !everybody_reported()) return;
  const bool behind = std::any_of(shards_.begin(), shards_.end(),
                                  [&](const auto& entry) { return entry.second.timeline > timeline(); });
  if (course_.lost || behind) return recover_course(out);
  if (bring_up(now, out) || park_what_waits(out) || go_back_when_pinned(now, out)) return;
  if (!going_back_) look_for_lost_gradients(now, out); // going back helps whoever is stuck
  if (writing_) return;
  give_up_evaluations(out);
  name_snapshot(now, out);
  set_floor(now, out);
  let_go_on(now, out);
}

/// R20: the history of the highest timeline is the newest there is.
void timeline_keeper::recover_course(data_dispatcher_actions& out) {
  const auto newest =
      std::max_element(shards_.begin(), shards_.end(), [](const auto& left, const auto& right) {
        return left.second.timeline < right.second.timeline;
      });
  course_.history = newest->second.durable.history;
  const auto parked = parked_slots(course_.history);
  course_.parked.insert(course_.parked.end(), parked.begin(), parked.end());
  std::sort(course_.parked.begin(), course_.parked.end());
  course_.parked.erase(std::unique(course_.parked.begin(), course_.parked.end()), course_.parked.end());
  auto entry = next_entry(restorable_everywhere().back().last);
  entry.timeline.value += timelines_skipped - 1;
  begin_timeline(course_, entry, "the journal is lost, or older than the shards", out);
}

/// R16: shards on an older timeline. True while there are some.
bool timeline_keeper::bring_up(time_point now, data_dispatcher_actions& out) {
  bool some = false;
  for (const auto& [id, shard] : shards_) {
    if (shard.timeline == timeline()) continue;
    some = true;
    const auto branch = *branched_since(course_.history, shard.timeline);
    if (branch.value > 0 && !contains(shard.durable.restorable, branch)) {
      begin_timeline(course_, next_entry(restorable_everywhere().back().last),
                     fmt::format("ps_shard {} cannot go back to version {}", id, branch), out);
      return true;
    }
  }
  for (const auto& [id, shard] : shards_)
    if (shard.timeline != timeline()) send_rewind_to(id, now, out);
  return some;
}

void timeline_keeper::send_rewind_to(ps_shard_id shard, time_point now, data_dispatcher_actions& out) {
  const auto branch = branched_since(course_.history, shards_.at(shard).timeline);
  if (branch && repeats_.is_due(subject::rewind, protocol::ps_shard_role(shard), timeline().value, now))
    out.emplace_back(send_rewind{shard, {timeline(), *branch, course_.history}});
}

// ---- slots that are left out
// -------------------------------------------------------------------------------------

void timeline_keeper::park(const protocol::parked_slot& slot, time_point now, data_dispatcher_actions& out) {
  to_park_.insert(slot);
  decide(now, out);
}

/// True while a slot is on its way to the journal.
bool timeline_keeper::journal_parked(data_dispatcher_actions& out) {
  auto course = course_;
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
  if (course.parked == course_.parked) return false;
  write(std::move(course), std::nullopt, out);
  return true;
}

/// R18: parking is going back to before the slot's step. True when it does.
bool timeline_keeper::park_what_waits(data_dispatcher_actions& out) {
  if (journal_parked(out)) return true;
  const auto parked = parked_slots(course_.history);
  std::vector<protocol::parked_slot> waiting;
  std::set_difference(course_.parked.begin(), course_.parked.end(), parked.begin(), parked.end(),
                      std::back_inserter(waiting));
  if (waiting.empty()) return false;
  if (is_planted(config_.bug, planted_bug::park_in_place)) {
    auto course = course_;
    course.history.back().parked.insert(course.history.back().parked.end(), waiting.begin(), waiting.end());
    for (const auto& [id, shard] : shards_)
      out.emplace_back(send_rewind{id, {timeline(), course.history.back().branch, course.history}});
    write(std::move(course), std::nullopt, out);
    return true;
  }
  const auto branch = greatest_up_to(restorable_everywhere(), version_before(waiting.front().step));
  auto entry = next_entry(*branch);
  entry.parked = waiting;
  begin_timeline(course_, std::move(entry),
                 fmt::format("{} is left out", protocol::describe(waiting.front())), out);
  return true;
}

// ---- the operator
// ------------------------------------------------------------------------------------------------

void timeline_keeper::go_back(const protocol::go_back& wanted, time_point now, data_dispatcher_actions& out) {
  if (wanted.revision <= course_.history.back().revision) return; // told again
  if (closed_) {
    out.emplace_back(decision_made{"going-back-refused", "the job is over"});
    return;
  }
  going_back_ = going_back{wanted, std::nullopt};
  for (const auto& slot : wanted.skip) // one that is to be left out must be ahead
    if (!std::binary_search(course_.parked.begin(), course_.parked.end(), slot))
      going_back_->wanted.version = std::min(going_back_->wanted.version, version_before(slot.step));
  decide(now, out);
}

/// R16a: a floor may be on its way, so the version is pinned first. True when it goes back now.
bool timeline_keeper::go_back_when_pinned(time_point now, data_dispatcher_actions& out) {
  if (!going_back_) return false;
  const auto can = restorable_everywhere();
  if (!going_back_->version || !contains(can, *going_back_->version))
    going_back_->version = greatest_up_to(can, going_back_->wanted.version);
  const auto version = *going_back_->version;
  bool pinned = true;
  for (const auto& [id, shard] : shards_) {
    if (shows_pin(shard.durable, config_.self, version)) continue;
    pinned = false;
    if (repeats_.is_due(subject::pin, protocol::ps_shard_role(id), version.value, now))
      out.emplace_back(send_pin{id, {timeline(), config_.self, version}});
  }
  if (!pinned && !is_planted(config_.bug, planted_bug::undo_unpinned)) return false;
  auto course = course_;
  auto entry = next_entry(version);
  entry.revision = going_back_->wanted.revision;
  for (const auto& slot : going_back_->wanted.skip) {
    const auto added = park_in(course, slot, config_.sizes);
    entry.parked.insert(entry.parked.end(), added.begin(), added.end());
  }
  begin_timeline(course, std::move(entry), "the operator goes back", out);
  return true;
}

// ---- lost gradients
// ----------------------------------------------------------------------------------------------

/// R14. The only way out, so it is repeated as long as somebody is stuck.
void timeline_keeper::look_for_lost_gradients(time_point now, data_dispatcher_actions& out) {
  if (is_planted(config_.bug, planted_bug::no_probe)) return;
  if (!search_) {
    const auto stuck = find_stuck(shards_, config_.couples);
    if (stuck.empty() || !workers_are_known_) return;
    search_.emplace((config_.self.value << search_id_bits) + next_search_++, stuck, workers_,
                    config_.ps_shards);
  }
  if (search_->complete()) return end_search(out);
  for (const auto& role : search_->waits_for())
    if (repeats_.is_due(subject::probe, role, search_->id(), now))
      out.emplace_back(send_probe{role, {search_->id()}});
}

void timeline_keeper::end_search(data_dispatcher_actions& out) {
  const auto lost =
      search_->verdict(shards_, config_.couples, parked_slots(course_.history), config_.sizes.slots_of);
  search_.reset();
  if (lost) begin_timeline(course_, next_entry(restorable_everywhere().back().last), *lost, out);
}

// ---- the journal
// -------------------------------------------------------------------------------------------------

protocol::timeline_entry timeline_keeper::next_entry(version_id branch) const {
  return {{timeline().value + 1}, branch, course_.history.back().revision, {}};
}

/// R15, R16: the journal first. What was evaluated beyond the branch is void (R17).
void timeline_keeper::begin_timeline(const journaled_course& before, protocol::timeline_entry entry,
                                     std::string reason, data_dispatcher_actions& out) {
  std::uint64_t highest = entry.branch.value;
  for (const auto& [id, shard] : shards_) highest = std::max(highest, shard.applied.value);
  const bool on_purpose = entry.revision != before.history.back().revision;
  const timeline_started start{entry.timeline, entry.branch, highest - entry.branch.value, std::move(reason),
                               on_purpose};
  auto course = before;
  std::erase_if(course.evaluations, [&](const auto& one) { return one.version > entry.branch; });
  course.history = extended(std::move(course.history), std::move(entry));
  course.lost = false;
  if (is_planted(config_.bug, planted_bug::late_journal))
    for (const auto& [id, shard] : shards_)
      out.emplace_back(
          send_rewind{id,
                      {start.timeline, branched_since(course.history, shard.timeline).value_or(start.branch),
                       course.history}});
  write(std::move(course), start, out);
}

void timeline_keeper::write(journaled_course course, std::optional<timeline_started> start,
                            data_dispatcher_actions& out) {
  writing_ = writing{next_write_++, std::move(course), std::move(start)};
  out.emplace_back(journal_course{writing_->id, writing_->course});
}

void timeline_keeper::on_journaled(std::uint64_t id, time_point now, data_dispatcher_actions& out) {
  if (!writing_ || writing_->id != id) return;
  const auto before = std::exchange(course_, std::move(writing_->course));
  const auto start = std::move(writing_->start);
  writing_.reset();
  book_.set_results(course_.evaluations);
  if (start) {
    search_.reset();
    going_back_.reset();
    book_.restart();
    schedule_.restart();
    out.emplace_back(*start);
  }
  for (const auto& one : course_.evaluations)
    if (!std::count(before.evaluations.begin(), before.evaluations.end(), one))
      out.emplace_back(evaluation_finished{one});
  decide(now, out);
}

} // namespace dlrun::data_dispatcher
