// A PS shard's copy_chain, copy_start and copy_streams against keepers that are played, over lines
// that lose, double and reorder, while training goes on, goes back, drops what is old, and loses
// processes and hosts with their disks, several at once too, with a log of every step and with
// snapshots alone. A seed is a schedule.
#include "actors/ps_shard/copy_chain.hpp"
#include "actors/ps_shard/copy_start.hpp"
#include "tests/actors/ps_shard/played_copy.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dlrun::ps_shard {
namespace {

using protocol::durability;
using test::played_copy;
using test::played_store;

constexpr std::uint64_t seeds = 100;
constexpr std::uint64_t seeds_of_bugs = 1000; ///< until one is found
constexpr int turns = 400;
constexpr int quiet_turns = 1000;
constexpr std::uint64_t bound = 2;
constexpr std::size_t snapshots_in_work_max = 2;
/// Of a start that waits for a copy which is of a later timeline: as copy_wait has it.
constexpr int waiting_turns_max = 150;

struct played_job {
  durability kept = durability::every_step;
  std::size_t copies = 1;
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Of a timeline that was left what is below its branch.
std::uint64_t limit_of(const played_store& own, const played_store& copy) {
  const auto branch = protocol::branched_since(own.history, copy.timeline());
  return branch ? branch->value : std::numeric_limits<std::uint64_t>::max();
}

std::string describe(const played_store& store) {
  std::string text =
      fmt::format("{}, floor {}; timelines", protocol::to_string(store.restorable()), store.floor);
  for (const auto& one : store.history) text += fmt::format(" {} from {}", one.timeline, one.branch);
  text += "; steps";
  for (const auto& [step, made_on] : store.log) text += fmt::format(" {} of {}", step, made_on);
  text += "; snapshots";
  for (const auto& [version, made_on] : store.snapshots) text += fmt::format(" {} of {}", version, made_on);
  return text;
}

std::string describe_lag(const std::vector<played_copy>& copies, const played_store& own, bool is_waiting) {
  std::string text = is_waiting ? "the PS shard does not begin" : "a copy stays behind";
  for (const auto& copy : copies) text += ": " + describe(copy.keeper.store);
  return (text + ", of " + describe(own)).substr(0, 2000);
}

/// What a start of the PS shard has reported in all.
struct spoken_word {
  played_store store{};
  std::uint64_t committed = 0;
  std::set<std::uint64_t> told{}; ///< snapshots
};

/// The copy can restore all that the PS shard with that store has said, with the same bits; but for
/// what is below a floor that was in use. @returns what of it is not there; ""
std::string what_lacks(const played_store& copy, const played_store& own, std::uint64_t committed,
                       const std::set<std::uint64_t>& told, std::uint64_t floor_in_use) {
  const auto limit = std::min(committed, limit_of(own, copy));
  const auto low = std::min(copy.floor, floor_in_use);
  if (copy.end() < limit) return "the copy lacks what was committed";
  const auto copied = copy.restorable();
  for (const auto& range : protocol::up_to(own.restorable(), {limit})) {
    const version_id first{std::max(range.first.value, low)};
    if (first <= range.last && !(contains(copied, first) && contains(copied, range.last)))
      return fmt::format("the copy cannot restore versions {} to {}", range.first, range.last);
  }
  for (auto step = std::max(own.floor, copy.floor); step < limit; ++step) {
    const auto mine = own.log.find(step);
    const auto other = copy.log.find(step);
    if (mine != own.log.end() && (other == copy.log.end() || other->second != mine->second))
      return fmt::format("the copy has not got step {}, or another one", step);
  }
  for (const auto version : told) {
    if (version > limit || version < low) continue;
    const auto other = copy.snapshots.find(version);
    if (other == copy.snapshots.end() || other->second != own.snapshots.at(version))
      return fmt::format("the copy has no snapshot of version {}, or another one", version);
  }
  return "";
}

class played_shard {
public:
  /// In the end one waits for the copies to get there, without faults: while nothing is done, or
  /// while steps are made as fast as they can, faster than they can be copied in every other such
  /// seed.
  played_shard(std::uint64_t seed, const played_job& job)
      : is_busy_(seed % 2 == 1)
      , is_slow_(seed % 4 == 1)
      , is_several_(job.copies > 1)
      , random_(seed)
      , job_(job)
      , has_log_(job.kept == durability::every_step)
      , chain_(job.copies, job.kept, job.bug)
      , copies_(job.copies, played_copy{job.bug}) {
    start_.begin({});
  }

  /// @returns what went wrong; "" if nothing did.
  std::string run() {
    agent_tells();
    for (int turn = 0; turn < turns && wrong_.empty(); ++turn) this->turn();
    is_quiet_ = true;
    for (auto& copy : copies_) copy.keeper.is_full = false;
    for (int turn = 0; turn < quiet_turns && wrong_.empty() && !are_level(); ++turn) this->turn();
    if (wrong_.empty() && !are_level()) wrong_ = describe_lag(copies_, store_, is_waiting_);
    return wrong_;
  }

private:
  bool chance(int of_hundred) { return static_cast<int>(random_() % 100) < of_hundred; }
  bool counts(std::size_t copy) const { return chain_.of(copy).counted() == copies_[copy].keeper.self; }
  /// A copy that was the store of an earlier start may have more.
  bool are_level() const {
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (!counts(copy) || (!is_busy_ && copies_[copy].keeper.store.end() < store_.end())) return false;
    return !is_waiting_;
  }

  void turn() {
    now_ += std::chrono::milliseconds(is_quiet_ && is_busy_ ? 200 : 20);
    if (!is_quiet_) {
      train();
      disturb();
    } else if (is_busy_) {
      follow();
      make_step();
      const int often = has_log_ ? 20 : 60;
      if (chance(is_slow_ ? often : 2)) begin_snapshot();
      if (chance(often)) end_snapshot();
      drop_old(chance(is_slow_ ? 20 : 2));
    } else {
      follow();
      drop_old(false);
    }
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) talk_to(copy);
    give_up_later_copies();
    agent_hears();
    check();
  }
  void train() {
    follow();
    if (chance(50)) make_step();
    if (chance(6)) begin_snapshot();
    if (chance(20)) end_snapshot();
    if (late_ && chance(30)) { // its thread is heard after all went back
      take(chain_.on_snapshot(late_->second, {late_->first}));
      late_.reset();
    }
  }
  void disturb() {
    for (auto& copy : copies_)
      if (chance(3)) copy.keeper.is_full = chance(30);
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (chance(2)) take(chain_.let_go(copy));
    drop_old(chance(is_several_ ? 20 : 3));
    if (chance(2)) go_back();
    if (chance(1)) restart_shard(chance(70));
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (chance(1)) lose_keeper(copy, chance(50));
    if (chance(is_several_ ? 4 : 1)) lose_host_of_shard(); // then there is more to find
  }
  void talk_to(std::size_t number) {
    auto& copy = copies_[number];
    if (copy.is_stuck(now_) || (!copy.runs() && chance(50))) copy.begin_stream(store_, shard_, now_);
    const auto wrong = copy.pump(store_, shard_, chain_.of(number).newest_standing(), now_);
    expect(wrong.empty(), wrong);
    copy.deliver([this](std::size_t waiting) { return arriving(waiting); }, random_, !is_quiet_,
                 [&](const auto& said) { hear(number, said); });
    if (is_quiet_ || chance(20)) take(chain_.look_again(number, store_.described(), now_));
  }

  // ---- the PS shard

  void make_step() {
    if (is_waiting_) return;
    if (!has_log_) return void(++applied_);
    if (store_.end() - committed_ >= bound) return;
    const auto step = store_.end();
    store_.log[step] = store_.timeline();
    applied_ = step + 1;
    take(chain_.on_logged({applied_}));
  }
  /// It is of the version of now, and durable later.
  void begin_snapshot() {
    std::size_t untold = 0;
    for (const auto& [version, made_on] : store_.snapshots) untold += told_.contains(version) ? 0 : 1;
    const bool has_room = has_log_ || untold < snapshots_in_work_max;
    if (!is_waiting_ && applied_ > 0 && !begun_ && has_room) begun_ = applied_;
  }
  void end_snapshot() {
    const auto version = !is_waiting_ ? std::exchange(begun_, std::nullopt) : std::nullopt;
    if (!version || store_.snapshots.contains(*version) || *version < store_.floor) return;
    store_.snapshots[*version] = store_.made_on(*version);
    take(chain_.on_snapshot(store_.timeline(), {*version}));
  }
  /// What the dispatcher has said it says again and again, to another start too, until it says
  /// more.
  void drop_old(bool says_another) {
    if (is_waiting_) return;
    const auto higher = told_.lower_bound(floor_);
    const auto count = static_cast<std::size_t>(std::distance(higher, told_.end()));
    if (says_another && count > 0) floor_ = *std::next(higher, static_cast<long>(random_() % count));
    if (!told_.contains(floor_)) return;
    store_.drop_below(floor_);
    floor_in_use_ = std::max(floor_in_use_, store_.floor);
    told_.erase(told_.begin(), told_.lower_bound(store_.floor));
  }
  void go_back() {
    if (is_waiting_ || committed_ < store_.floor + 1) return;
    auto version = store_.floor + random_() % (committed_ - store_.floor);
    if (!has_log_)
      version = protocol::greatest_up_to(store_.restorable(), {version}).value_or(version_id{}).value;
    if (version < store_.floor || version < low_ || !contains(store_.restorable(), version_id{version}))
      return;
    course_ = store_.history;
    course_.push_back({{store_.timeline().value + 1 + random_() % 2}, {version}});
    go_to(version);
  }
  /// A start that has a store of an older timeline hears of the newest one.
  void follow() {
    if (is_waiting_ || store_.history == course_) return;
    const auto branch = protocol::branched_since(course_, store_.timeline()).value_or(version_id{});
    go_to(protocol::greatest_up_to(store_.restorable(), branch).value_or(version_id{}).value);
  }
  void go_to(std::uint64_t version) {
    if (const auto late = std::exchange(begun_, std::nullopt)) late_ = {*late, store_.timeline()};
    store_.go_back(course_, version);
    told_.erase(told_.upper_bound(version), told_.end());
    floor_ = std::min(floor_, version);
    floor_in_use_ = std::min(floor_in_use_, version);
    applied_ = committed_ = version;
    chain_.restart(course_, {version});
    for (auto& copy : copies_) copy.begin_stream(store_, shard_, now_);
  }
  /// What it has on its disk is all that it knows, and, where memory outlives it, the version that
  /// it stood at (R36).
  void restart_shard(bool with_memory) {
    end_start();
    ++shard_.value;
    chain_ = copy_chain{job_.copies, job_.kept, job_.bug};
    for (auto& copy : copies_) copy.restart_shard();
    begun_.reset();
    late_.reset();
    const auto end = store_.end();
    if (has_log_ || !with_memory) applied_ = end;
    chain_.restart(store_.history, {end});
    loaded_standing loaded{.history = store_.history, .version = {end}};
    loaded.restorable = store_.restorable();
    loaded.snapshots = store_.snapshot_list();
    start_.begin(loaded);
    told_.clear();
    waited_ = 0;
    agent_tells();
  }
  /// It says nothing more. One that has not begun has said nothing, and what holds is what the one
  /// before it has said.
  void end_start() {
    if (!std::exchange(is_waiting_, true)) spoken_ = {store_, committed_, told_};
    start_ = {};
  }
  void take(const released_versions& news) {
    if (news.committed) committed_ = std::max(committed_, news.committed->value);
    for (const auto one : news.snapshots) {
      expect(store_.snapshots.contains(one.value),
             fmt::format("a snapshot of version {} is told, and is not there", one));
      told_.insert(one.value);
    }
    if (!has_log_ && !news.snapshots.empty()) committed_ = std::max(committed_, news.snapshots.back().value);
  }
  void settle() {
    const auto begins_with = start_.settle(chain_, store_.described());
    if (!begins_with) return;
    is_waiting_ = false;
    committed_ = store_.end();
    for (const auto version : begins_with->snapshots) told_.insert(version.value);
    low_ = 0;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (counts(copy)) low_ = std::max(low_, chain_.of(copy).newest_standing()->floor.value);
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      for (const auto& range : begins_with->restorable)
        expect(!counts(copy) || contains(copies_[copy].keeper.store.restorable(), range.first),
               fmt::format("the core hears of version {}, which a copy has dropped", range.first));
  }

  // ---- the line

  /// @returns how many of those that are on the way arrive in this turn.
  std::size_t arriving(std::size_t waiting) {
    if (!is_quiet_) return random_() % 4;
    return std::min<std::size_t>(waiting, !is_busy_ ? waiting : is_slow_ ? 1 : 4);
  }
  void hear(std::size_t copy, const protocol::copy_standing& said) {
    if (!copies_[copy].accepts(said, shard_, now_)) return;
    take(chain_.on_standing(copy, said, store_.described(), now_));
    settle();
  }

  // ---- the agent

  void agent_hears() {
    if (is_waiting_ || !chance(is_quiet_ ? 100 : 30)) return;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      copies_[copy].believed = chain_.of(copy).counted();
  }
  /// At the start of the PS shard, and when a keeper starts again.
  void agent_tells() {
    protocol::keeper_places places{.is_known = true};
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      places.all.push_back({.incarnation = copies_[copy].keeper.self, .counts = copies_[copy].is_believed()});
    for (const auto copy : start_.hear(places)) chain_.begin_with(copy, places.all[copy].incarnation);
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      take(chain_.on_keeper(copy, copies_[copy].keeper.self));
    settle();
  }
  void lose_keeper(std::size_t number, bool with_disk) {
    auto& copy = copies_[number];
    copy.lose_keeper(with_disk);
    if (chance(30)) copy.keeper.damage(random_(), job_.kept);
    copy.end_stream();
    agent_tells();
  }
  /// R25: where a copy is whole the PS shard goes on from it, and lacks nothing; whichever it is,
  /// since what the agent knows of the others is old. Of several some may be lost with it. The host
  /// that it was on may come back with what it had, if that is not of a later timeline: else the
  /// dispatcher would bring the PS shard there first.
  void lose_host_of_shard() {
    std::vector<std::size_t> whole;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (copies_[copy].is_believed()) whole.push_back(copy);
    if (whole.empty()) return;
    for (const auto copy : whole) expect_whole(copy);
    const auto chosen = whole.size() == 1 ? whole.front() : whole[random_() % whole.size()];
    end_start();
    chain_ = copy_chain{job_.copies, job_.kept, job_.bug};
    auto& copy = copies_[chosen];
    std::swap(store_, copy.keeper.store);
    lose_keeper(chosen, chance(70) || copy.keeper.store.timeline() > store_.timeline());
    for (std::size_t other = 0; other < copies_.size(); ++other)
      if (other != chosen && chance(40)) lose_keeper(other, true);
    restart_shard(false);
  }
  /// A copy that is of a later timeline than the PS shard, which is to follow first, is waited for
  /// in vain: the agent ends it as one that is silent.
  void give_up_later_copies() {
    if (!is_waiting_ || ++waited_ < waiting_turns_max) return;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (counts(copy) && copies_[copy].keeper.store.timeline() > store_.timeline()) lose_keeper(copy, false);
  }

  void expect(bool holds, const std::string& what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }
  void expect_whole(std::size_t number) {
    const auto& copy = copies_[number].keeper.store;
    const auto wrong = is_waiting_
                           ? what_lacks(copy, spoken_.store, spoken_.committed, spoken_.told, floor_in_use_)
                           : what_lacks(copy, store_, committed_, told_, floor_in_use_);
    expect(wrong.empty(), wrong);
  }
  void check() {
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      if (counts(copy)) expect_whole(copy);
  }

  bool is_busy_;
  bool is_slow_;
  bool is_several_;
  std::mt19937_64 random_;
  played_job job_;
  bool has_log_;
  std::string wrong_;
  protocol::time_point now_{};
  bool is_quiet_ = false;
  incarnation shard_{1};
  played_store store_;
  copy_chain chain_;
  copy_start start_;
  std::optional<std::uint64_t> begun_;                        ///< version of a snapshot that is being made
  std::optional<std::pair<std::uint64_t, timeline_id>> late_; ///< that was, on a timeline that was left
  std::uint64_t applied_ = 0;                                 ///< with a log its end
  std::uint64_t committed_ = 0;                               ///< what the core has heard of
  std::uint64_t floor_ = 0;                                   ///< that the dispatcher has said last
  std::uint64_t floor_in_use_ = 0;                            ///< the highest that any start has followed
  std::uint64_t low_ = 0;                                     ///< below it a copy may have dropped something
  protocol::history course_ = protocol::first_history();      ///< with the newest timeline
  std::set<std::uint64_t> told_;                              ///< snapshots that the core has heard of
  bool is_waiting_ = true;                                    ///< it has not begun
  int waited_ = 0;                                            ///< turns
  spoken_word spoken_{};                                      ///< of the newest start that had begun
  std::vector<played_copy> copies_;
};

#ifndef DLRUN_PLANTED_BUGS
void expect_nothing_wrong(const played_job& job) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto wrong = played_shard{seed, job}.run();
    ASSERT_EQ(wrong, "") << "seed " << seed << " with " << job.copies << " copies";
  }
}

TEST(copies_of_a_store, hold_all_that_was_committed_whatever_is_lost) {
  expect_nothing_wrong({durability::every_step});
}

TEST(copies_of_a_store, hold_all_snapshots_that_were_told_whatever_is_lost) {
  expect_nothing_wrong({durability::snapshots});
}

TEST(copies_of_a_store, if_there_are_several_hold_all_that_was_committed_whatever_is_lost_at_once) {
  for (const std::size_t copies : {2U, 3U}) expect_nothing_wrong({durability::every_step, copies});
}

TEST(copies_of_a_store, if_there_are_several_hold_all_snapshots_whatever_is_lost_at_once) {
  for (const std::size_t copies : {2U, 3U}) expect_nothing_wrong({durability::snapshots, copies});
}

#else
using protocol::planted_bug;

void expect_found(played_job job, const std::map<std::string, planted_bug>& bugs) {
  for (const auto& [name, bug] : bugs) {
    job.bug = bug;
    std::uint64_t seed = 1;
    std::string wrong;
    while (seed <= seeds_of_bugs && (wrong = played_shard{seed, job}.run()).empty()) ++seed;
    EXPECT_NE(wrong, "") << name;
    fmt::print("{}: seed {}: {}\n", name, seed, wrong);
  }
}

TEST(copies_of_a_store, each_rule_that_is_broken_on_purpose_is_found) {
  expect_found({durability::every_step}, {{"commit_own_log", planted_bug::commit_own_log},
                                          {"count_early", planted_bug::count_early},
                                          {"newest_base", planted_bug::newest_base},
                                          {"keep_tail", planted_bug::keep_tail},
                                          {"hold_nothing", planted_bug::hold_nothing},
                                          {"drop_base", planted_bug::drop_base},
                                          {"late_floor", planted_bug::late_floor},
                                          {"late_snapshot", planted_bug::late_snapshot}});
}

TEST(copies_of_a_store, each_rule_that_is_broken_where_there_is_no_log_is_found) {
  expect_found({durability::snapshots}, {{"commit_own_log", planted_bug::commit_own_log},
                                         {"count_early", planted_bug::count_early},
                                         {"newest_base", planted_bug::newest_base},
                                         {"keep_tail", planted_bug::keep_tail},
                                         {"drop_base", planted_bug::drop_base},
                                         {"late_snapshot", planted_bug::late_snapshot}});
}

TEST(copies_of_a_store, each_rule_of_several_that_is_broken_is_found) {
  const std::map<std::string, planted_bug> bugs{{"commit_best", planted_bug::commit_best},
                                                {"forget_others", planted_bug::forget_others}};
  expect_found({durability::every_step, 2}, bugs);
  expect_found({durability::snapshots, 2}, bugs);
}
#endif

} // namespace
} // namespace dlrun::ps_shard
