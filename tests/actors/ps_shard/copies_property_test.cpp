// A PS shard's copy_book and copy_stream against a keeper that is played, over a line that loses,
// doubles and reorders, while training goes on, goes back, drops what is old, and loses processes
// and hosts with their disks, with a log of every step and with snapshots alone. A seed is a
// schedule.
#include "actors/ps_shard/copy_book.hpp"
#include "actors/ps_shard/copy_stream.hpp"
#include "tests/actors/ps_shard/played_copies.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_kind;
using protocol::durability;
using test::parts_of;
using test::played_keeper;
using test::played_line;
using test::played_part;
using test::played_store;

constexpr std::uint64_t seeds = 100;
constexpr int turns = 400;
constexpr int quiet_turns = 1000;
constexpr std::uint64_t bound = 2;
constexpr std::size_t snapshots_in_work_max = 2;
constexpr std::uint64_t snapshot_share = 4;

/// It has said that it has what the floor leaves, and more.
bool is_past_floor(const std::optional<protocol::copy_standing>& said, const played_store& own) {
  const version_id floor{own.floor};
  return said && said->timeline == own.timeline() && floor > said->floor && floor <= said->end &&
         std::ranges::binary_search(said->snapshots, floor);
}

class played_pair {
public:
  /// In the end one waits for the copy to get there, without faults: while nothing is done, or
  /// while steps are made as fast as they can, faster than they can be copied in every other such
  /// seed.
  played_pair(std::uint64_t seed, durability kept, protocol::planted_bug bug = protocol::planted_bug::none)
      : is_busy_(seed % 2 == 1)
      , is_slow_(seed % 4 == 1)
      , random_(seed)
      , kept_(kept)
      , has_log_(kept == durability::every_step)
      , bug_(bug)
      , book_(kept, bug)
      , stream_(bug) {}

  /// @returns what went wrong; "" if nothing did.
  std::string run() {
    agent_tells();
    for (int turn = 0; turn < turns && wrong_.empty(); ++turn) this->turn();
    is_quiet_ = true;
    keeper_.is_full = false;
    for (int turn = 0; turn < quiet_turns && wrong_.empty() && !is_level(); ++turn) this->turn();
    if (wrong_.empty() && !is_level())
      wrong_ = fmt::format("the copy stays behind: {}, of {}", describe(keeper_.store), describe(store_))
                   .substr(0, 2000);
    return wrong_;
  }

private:
  bool chance(int of_hundred) { return static_cast<int>(random_() % 100) < of_hundred; }
  std::size_t any(std::size_t count) { return random_() % count; }
  static std::string describe(const played_store& store) {
    std::string text =
        fmt::format("{}, floor {}; timelines", protocol::to_string(store.restorable()), store.floor);
    for (const auto& one : store.history) text += fmt::format(" {} from {}", one.timeline, one.branch);
    text += "; steps";
    for (const auto& [step, made_on] : store.log) text += fmt::format(" {} of {}", step, made_on);
    text += "; snapshots";
    for (const auto& [version, made_on] : store.snapshots) text += fmt::format(" {} of {}", version, made_on);
    return text;
  }
  /// A copy that was the store of an earlier start may have more.
  bool is_level() const {
    return book_.counted() == keeper_.self && (is_busy_ || keeper_.store.end() >= store_.end());
  }

  void turn() {
    now_ += std::chrono::milliseconds(is_quiet_ && is_busy_ ? 200 : 20);
    if (!is_quiet_) {
      if (chance(50)) make_step();
      if (chance(6)) begin_snapshot();
      if (chance(20)) end_snapshot();
      if (late_ && chance(30)) { // its thread is heard after all went back
        take(book_.on_snapshot(late_->second, {late_->first}));
        late_.reset();
      }
      if (chance(3)) keeper_.is_full = chance(30);
      if (chance(2)) take(book_.let_go());
      drop_old(chance(3));
      if (chance(2)) go_back();
      if (chance(1)) restart_shard(chance(70));
      if (chance(1)) lose_keeper(chance(50));
      if (chance(1)) lose_host_of_shard();
    } else if (is_busy_) {
      make_step();
      const int often = has_log_ ? 20 : 60;
      if (chance(is_slow_ ? often : 2)) begin_snapshot();
      if (chance(often)) end_snapshot();
      drop_old(chance(is_slow_ ? 20 : 2));
    } else {
      drop_old(false);
    }
    if (stream_.is_stuck(now_) || (!stream_.runs() && chance(50))) begin_stream();
    pump();
    deliver();
    agent_hears();
    check();
  }

  // ---- the PS shard

  void make_step() {
    if (is_waiting_) return;
    if (!has_log_) return void(++applied_);
    if (store_.end() - committed_ >= bound) return;
    const auto step = store_.end();
    store_.log[step] = store_.timeline();
    applied_ = step + 1;
    take(book_.on_logged({applied_}));
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
    take(book_.on_snapshot(store_.timeline(), {*version}));
  }
  /// What the dispatcher has said it says again and again, to another start too.
  void drop_old(bool says_another) {
    if (is_waiting_ || told_.empty()) return;
    if (says_another) floor_ = *std::next(told_.begin(), static_cast<long>(any(told_.size())));
    if (!told_.contains(floor_)) return;
    store_.drop_below(floor_);
    told_.erase(told_.begin(), told_.lower_bound(store_.floor));
  }
  void go_back() {
    if (is_waiting_ || committed_ < store_.floor + 1) return;
    auto version = store_.floor + any(committed_ - store_.floor);
    if (!has_log_)
      version = protocol::greatest_up_to(store_.restorable(), {version}).value_or(version_id{}).value;
    if (version < store_.floor || !contains(store_.restorable(), version_id{version})) return;
    auto history = store_.history;
    history.push_back({{store_.timeline().value + 1 + any(2)}, {version}});
    if (const auto late = std::exchange(begun_, std::nullopt)) late_ = {*late, store_.timeline()};
    store_.go_back(history, version);
    told_.erase(told_.upper_bound(version), told_.end());
    floor_ = std::min(floor_, version);
    applied_ = committed_ = version;
    book_.restart(history, {version});
    begin_stream();
  }
  /// What it has on its disk is all that it knows, and, where memory outlives it, the version that
  /// it stood at (R36).
  void restart_shard(bool with_memory) {
    ++shard_.value;
    book_ = copy_book{kept_, bug_};
    stream_ = copy_stream{bug_};
    record_.reset();
    snapshot_.reset();
    begun_.reset();
    late_.reset();
    const auto end = store_.end();
    if (has_log_ || !with_memory) applied_ = end;
    book_.restart(store_.history, {end});
    told_.clear();
    is_waiting_ = true;
    agent_tells();
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
    if (!is_waiting_ || (book_.counted().value != 0 && !book_.holds_all(store_.described()))) return;
    is_waiting_ = false;
    committed_ = store_.end();
    for (const auto& [version, made_on] : store_.snapshots) told_.insert(version);
  }
  void begin_stream() {
    record_.reset();
    snapshot_.reset();
    stream_.begin(now_);
    floor_sent_ = {};
    send({copy_kind::hello, {}});
  }
  void pump() {
    while (stream_.runs() && stream_.has_room()) {
      if (!record_)
        if (const auto item = stream_.next(store_.described())) {
          if (item->kind == copy_kind::floor) floor_sent_ = item->version;
          const bool is_late =
              item->kind == copy_kind::record && !snapshot_ && floor_sent_.value < store_.floor;
          expect(!is_late || !is_past_floor(book_.newest_standing(), store_),
                 "the copy gets a record before it hears of the floor");
          if (!begin_piece(*item)) return stream_.fail(now_);
          continue;
        }
      const bool is_its_turn = !record_ || stream_.is_turn_of(snapshot_share);
      auto& next = snapshot_ && is_its_turn ? snapshot_ : record_;
      if (!next) return;
      send(next->item, next->made_on, next->sent++);
      if (next->sent < parts_of(next->item)) continue;
      if (next->item.kind == copy_kind::snapshot) stream_.on_snapshot_sent();
      next.reset();
    }
  }
  /// @returns false for what has been dropped meanwhile.
  bool begin_piece(const copy_item& item) {
    if (item.kind != copy_kind::record && item.kind != copy_kind::snapshot) {
      send(item);
      return true;
    }
    const auto& all = item.kind == copy_kind::record ? store_.log : store_.snapshots;
    const auto found = all.find(item.version.value);
    if (found == all.end()) return false;
    (item.kind == copy_kind::record ? record_ : snapshot_) = piece{item, found->second};
    return true;
  }
  void send(const copy_item& item, timeline_id made_on = {}, std::uint64_t index = 0) {
    played_part part{keeper_.self, shard_, stream_.stream(), stream_.take_number(), item, index, made_on, {}};
    for (const auto& one : store_.history)
      if (one.timeline <= item.timeline) part.history.push_back(one);
    parts_.push(part);
  }

  // ---- the line

  /// @returns how many of those that are on the way arrive in this turn.
  std::size_t arriving(std::size_t waiting) {
    if (!is_quiet_) return any(4);
    return std::min<std::size_t>(waiting, !is_busy_ ? waiting : is_slow_ ? 1 : 4);
  }
  void deliver() {
    for (auto count = arriving(parts_.waiting()); count > 0; --count)
      if (const auto part = parts_.next(random_, !is_quiet_))
        if (const auto answer = keeper_.take(*part)) answers_.push(*answer);
    for (auto count = arriving(answers_.waiting()); count > 0; --count)
      if (const auto answer = answers_.next(random_, !is_quiet_)) hear(*answer);
  }
  void hear(const protocol::copy_standing& said) {
    if (said.incarnation != keeper_.self || said.shard != shard_ || !stream_.on_standing(said, now_)) return;
    take(book_.on_standing(said, store_.described(), now_));
    settle();
  }

  // ---- the agent

  void agent_hears() {
    if (!is_waiting_ && chance(is_quiet_ ? 100 : 30)) believed_ = book_.counted();
  }
  /// At the start of the PS shard, and when the keeper starts again.
  void agent_tells() {
    if (is_waiting_ && believed_ == keeper_.self) book_.begin_with(keeper_.self);
    take(book_.on_keeper(keeper_.self));
    settle();
  }
  void lose_keeper(bool with_disk) {
    believed_ = {}; // before anybody is told
    ++keeper_.self.value;
    if (with_disk) keeper_.store = {};
    keeper_.shard = {};
    keeper_.stream = keeper_.taken = keeper_.record_had = keeper_.snapshot_had = 0;
    if (chance(30)) keeper_.damage(random_(), kept_);
    stream_.end();
    agent_tells();
  }
  /// R25: where the copy is whole the PS shard goes on from it, and lacks nothing. The host that it
  /// was on may come back with what it had, if that is not of a later timeline: else the dispatcher
  /// would bring the PS shard there first.
  void lose_host_of_shard() {
    if (believed_ != keeper_.self) return;
    expect_whole();
    book_ = copy_book{kept_, bug_}; // that start says nothing more
    std::swap(store_, keeper_.store);
    lose_keeper(chance(70) || keeper_.store.timeline() > store_.timeline());
    restart_shard(false);
  }

  void expect(bool holds, const std::string& what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }
  /// The copy can restore all that the PS shard has said, with the same bits.
  void expect_whole() {
    expect(keeper_.store.end() >= limit(), "the copy lacks what was committed");
    const auto copied = keeper_.store.restorable();
    for (const auto& range : protocol::up_to(store_.restorable(), {limit()}))
      expect(contains(copied, range.first) && contains(copied, range.last),
             fmt::format("the copy cannot restore versions {} to {}", range.first, range.last));
    for (auto step = std::max(store_.floor, keeper_.store.floor); step < limit(); ++step) {
      const auto own = store_.log.find(step);
      if (own == store_.log.end()) continue;
      const auto other = keeper_.store.log.find(step);
      expect(other != keeper_.store.log.end() && other->second == own->second,
             fmt::format("the copy has not got step {}, or another one", step));
    }
    for (const auto version : told_) {
      const auto other = keeper_.store.snapshots.find(version);
      expect(version > limit() ||
                 (other != keeper_.store.snapshots.end() && other->second == store_.snapshots.at(version)),
             fmt::format("the copy has no snapshot of version {}, or another one", version));
    }
  }
  /// Of a timeline that was left what is below its branch.
  std::uint64_t limit() const {
    const auto branch = protocol::branched_since(store_.history, keeper_.store.timeline());
    return branch ? std::min(committed_, branch->value) : committed_;
  }
  void check() {
    if (book_.counted() == keeper_.self && !is_waiting_) expect_whole();
  }

  struct piece {
    copy_item item;
    timeline_id made_on;
    std::uint64_t sent = 0;
  };

  bool is_busy_;
  bool is_slow_;
  std::mt19937_64 random_;
  durability kept_;
  bool has_log_;
  protocol::planted_bug bug_;
  std::string wrong_;
  protocol::time_point now_{};
  bool is_quiet_ = false;
  incarnation shard_{1};
  played_store store_;
  copy_book book_;
  copy_stream stream_;
  std::optional<piece> record_, snapshot_;
  version_id floor_sent_{};                                   ///< in this stream
  std::optional<std::uint64_t> begun_;                        ///< version of a snapshot that is being made
  std::optional<std::pair<std::uint64_t, timeline_id>> late_; ///< that was, on a timeline that was left
  std::uint64_t applied_ = 0;                                 ///< with a log its end
  std::uint64_t committed_ = 0;                               ///< what the core has heard of
  std::uint64_t floor_ = 0;                                   ///< that the dispatcher has said last
  std::set<std::uint64_t> told_;                              ///< snapshots that it has
  bool is_waiting_ = true;                                    ///< it has not begun
  played_keeper keeper_;
  incarnation believed_{}; ///< the start of the keeper that counts, as the agent has heard
  played_line<played_part> parts_;
  played_line<protocol::copy_standing> answers_;
};

#ifndef DLRUN_PLANTED_BUGS
void expect_nothing_wrong(durability kept) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto wrong = played_pair{seed, kept}.run();
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

TEST(copies_of_a_store, hold_all_that_was_committed_whatever_is_lost) {
  expect_nothing_wrong(durability::every_step);
}

TEST(copies_of_a_store, hold_all_snapshots_that_were_told_whatever_is_lost) {
  expect_nothing_wrong(durability::snapshots);
}

#else
using protocol::planted_bug;

void expect_found(durability kept, const std::map<std::string, planted_bug>& bugs) {
  for (const auto& [name, bug] : bugs) {
    std::uint64_t seed = 1;
    std::string wrong;
    while (seed <= seeds && (wrong = played_pair{seed, kept, bug}.run()).empty()) ++seed;
    EXPECT_NE(wrong, "") << name;
    fmt::print("{}: seed {}: {}\n", name, seed, wrong);
  }
}

TEST(copies_of_a_store, each_rule_that_is_broken_on_purpose_is_found) {
  expect_found(durability::every_step, {{"commit_own_log", planted_bug::commit_own_log},
                                        {"count_early", planted_bug::count_early},
                                        {"newest_base", planted_bug::newest_base},
                                        {"keep_tail", planted_bug::keep_tail},
                                        {"hold_nothing", planted_bug::hold_nothing},
                                        {"drop_base", planted_bug::drop_base},
                                        {"late_floor", planted_bug::late_floor},
                                        {"late_snapshot", planted_bug::late_snapshot}});
}

TEST(copies_of_a_store, each_rule_that_is_broken_where_there_is_no_log_is_found) {
  expect_found(durability::snapshots, {{"commit_own_log", planted_bug::commit_own_log},
                                       {"count_early", planted_bug::count_early},
                                       {"newest_base", planted_bug::newest_base},
                                       {"keep_tail", planted_bug::keep_tail},
                                       {"drop_base", planted_bug::drop_base},
                                       {"late_snapshot", planted_bug::late_snapshot}});
}
#endif

} // namespace
} // namespace dlrun::ps_shard
