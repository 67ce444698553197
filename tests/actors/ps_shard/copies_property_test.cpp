// A PS shard's copy_book and copy_stream against a keeper that is played, over a line that loses,
// doubles and reorders, while training goes on, goes back, drops what is old, and loses processes
// and hosts with their disks. A seed is a schedule.
#include "actors/ps_shard/copy_book.hpp"
#include "actors/ps_shard/copy_stream.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_kind;

constexpr std::uint64_t seeds = 100;
constexpr int turns = 400;
constexpr int quiet_turns = 1000;
constexpr std::uint64_t bound = 2;
constexpr std::uint64_t snapshot_share = 4;

/// Steps, each with the timeline that it was made on: of two on one timeline the bits are the same
/// (R1).
struct played_store {
  protocol::history history = protocol::first_history();
  std::map<std::uint64_t, timeline_id> log{};
  std::map<std::uint64_t, timeline_id> snapshots{}; ///< of a version
  std::uint64_t floor = 0;

  timeline_id timeline() const { return protocol::newest_timeline(history); }
  protocol::version_set restorable() const {
    protocol::version_set all{{{0}, {0}}};
    const auto add = [&](std::uint64_t base) {
      auto end = base;
      while (log.contains(end)) ++end;
      protocol::insert(all, {{base}, {end}});
    };
    add(0);
    for (const auto& [version, made_on] : snapshots) add(version);
    return all;
  }
  std::uint64_t end() const { return restorable().back().last.value; }
  std::vector<version_id> snapshot_list() const {
    std::vector<version_id> all;
    for (const auto& [version, made_on] : snapshots) all.push_back({version});
    return all;
  }
  void go_back(const protocol::history& to, std::uint64_t version) {
    history = to;
    log.erase(log.lower_bound(version), log.end());
    snapshots.erase(snapshots.upper_bound(version), snapshots.end());
    floor = std::min(floor, version);
  }
  void drop_below(std::uint64_t version) {
    auto base = floor;
    for (const auto& [one, made_on] : snapshots)
      if (one <= version) base = std::max(base, one);
    floor = base;
    log.erase(log.begin(), log.lower_bound(base));
    snapshots.erase(snapshots.begin(), snapshots.lower_bound(base));
  }
  own_store described() const {
    own_store all{history, restorable(), {}, snapshot_list(), {floor}};
    for (const auto& [step, made_on] : log) {
      if (all.logged.empty() || all.logged.back().last.value != step) all.logged.push_back({{step}, {step}});
      all.logged.back().last = {step + 1};
    }
    return all;
  }
};

/// Of so many parts.
std::uint64_t parts_of(const copy_item& item) {
  switch (item.kind) {
  case copy_kind::record: return 1 + item.version.value % 3;
  case copy_kind::snapshot: return 1 + item.version.value % 6;
  default: return 1;
  }
}

struct played_part {
  incarnation keeper, shard;
  std::uint64_t stream = 0, number = 0;
  copy_item item;
  std::uint64_t index = 0; ///< of the part in its piece
  timeline_id made_on;
  protocol::history history;
};

struct played_keeper {
  incarnation self{1};
  played_store store;
  incarnation shard{};
  std::uint64_t stream = 0, taken = 0;
  bool failed = false;
  bool is_full = false; ///< a record fails with its last part
  std::uint64_t record_had = 0, snapshot_had = 0;

  std::optional<protocol::copy_standing> take(const played_part& part) {
    if (part.keeper != self || part.shard < shard) return std::nullopt;
    if (part.shard > shard || part.stream > stream) {
      if (part.item.kind != copy_kind::hello || part.number != 0) return std::nullopt;
      shard = part.shard;
      stream = part.stream;
      taken = record_had = snapshot_had = 0;
      failed = false;
    }
    if (part.stream != stream || part.number != taken || failed) return std::nullopt;
    if (follow(part))
      ++taken;
    else
      failed = true;
    if (failed) record_had = snapshot_had = 0;
    return protocol::copy_standing{.incarnation = self,
                                   .shard = shard,
                                   .stream = stream,
                                   .taken = taken,
                                   .timeline = store.timeline(),
                                   .end = {store.end()},
                                   .floor = {store.floor},
                                   .restorable = store.restorable(),
                                   .snapshots = store.snapshot_list(),
                                   .record_bytes = record_had,
                                   .snapshot_bytes = snapshot_had,
                                   .failure = failed ? "it does not fit" : ""};
  }

  bool follow(const played_part& part) {
    const auto version = part.item.version.value;
    switch (part.item.kind) {
    case copy_kind::hello: return true;
    case copy_kind::floor:
      if (snapshot_had > 0) return false;
      store.drop_below(version);
      return true;
    case copy_kind::rewind:
      record_had = snapshot_had = 0;
      if (!contains(store.restorable(), part.item.version)) return false;
      store.go_back(part.history, version);
      return true;
    case copy_kind::record: return take_piece(part, record_had);
    case copy_kind::snapshot: return take_piece(part, snapshot_had);
    }
    return false;
  }

  bool take_piece(const played_part& part, std::uint64_t& had) {
    if (part.index != had || part.item.timeline != store.timeline()) return false;
    if (++had < parts_of(part.item)) return true;
    had = 0;
    const auto version = part.item.version.value;
    if (part.item.kind == copy_kind::record) {
      if (is_full || version > store.end()) return false;
      if (version == store.end()) store.log[version] = part.made_on;
      return true;
    }
    if (store.snapshots.contains(version) || version < store.floor) return false;
    store.snapshots[version] = part.made_on;
    return true;
  }
  /// Another start of it finds a snapshot damaged, which is not the one that all else follows from.
  void damage(std::uint64_t which) {
    if (store.snapshots.size() < 2) return;
    const auto one = std::next(store.snapshots.begin(), static_cast<long>(which % store.snapshots.size()));
    auto without = store;
    without.snapshots.erase(one->first);
    if (without.restorable() == store.restorable()) store = without;
  }
};

/// What is on its way in one direction.
template <class Message>
class played_line {
public:
  void push(Message one) { all_.push_back(std::move(one)); }
  std::size_t waiting() const { return all_.size(); }
  /// @param is_bad it loses, doubles and reorders
  std::optional<Message> next(std::mt19937_64& random, bool is_bad) {
    if (all_.empty()) return std::nullopt;
    const auto chance = [&](std::uint64_t of_hundred) { return is_bad && random() % 100 < of_hundred; };
    const auto at = chance(20) ? random() % all_.size() : 0;
    auto one = all_[at];
    if (!chance(5)) all_.erase(all_.begin() + static_cast<long>(at)); // else it comes again
    if (chance(5)) return std::nullopt;
    return one;
  }

private:
  std::vector<Message> all_;
};

class played_pair {
public:
  /// In the end one waits for the copy to get there, without faults: while nothing is done, or
  /// while steps are made as fast as they can, faster than they can be copied in every other such
  /// seed.
  played_pair(std::uint64_t seed, protocol::planted_bug bug)
      : is_busy_(seed % 2 == 1)
      , is_slow_(seed % 4 == 1)
      , random_(seed)
      , bug_(bug)
      , book_(bug) {}

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
  bool is_level() const {
    return book_.counted() == keeper_.self && (is_busy_ || keeper_.store.end() == store_.end());
  }

  void turn() {
    now_ += std::chrono::milliseconds(is_quiet_ && is_busy_ ? 200 : 20);
    if (!is_quiet_) {
      if (chance(50)) make_step();
      if (chance(6)) begin_snapshot();
      if (chance(20)) end_snapshot();
      if (chance(3)) keeper_.is_full = chance(30);
      if (chance(2)) take(book_.let_go());
      if (chance(3)) drop_old();
      if (chance(2)) go_back();
      if (chance(1)) restart_shard();
      if (chance(1)) lose_keeper(chance(50));
      if (chance(1)) lose_host_of_shard();
    } else if (is_busy_) {
      make_step();
      if (chance(is_slow_ ? 20 : 2)) begin_snapshot();
      if (chance(20)) end_snapshot();
      if (chance(is_slow_ ? 20 : 2)) drop_old();
    }
    if (stream_.is_stuck(now_) || (!stream_.runs() && chance(50))) begin_stream();
    pump();
    deliver();
    agent_hears();
    check();
  }

  // ---- the PS shard

  void make_step() {
    if (is_waiting_ || store_.end() - committed_ >= bound) return;
    const auto step = store_.end();
    store_.log[step] = store_.timeline();
    take(book_.on_logged({step + 1}));
  }
  /// It is of the version of now, and durable later.
  void begin_snapshot() {
    if (!is_waiting_ && store_.end() > 0 && !begun_) begun_ = store_.end();
  }
  void end_snapshot() {
    const auto version = !is_waiting_ ? std::exchange(begun_, std::nullopt) : std::nullopt;
    if (!version || store_.snapshots.contains(*version) || *version < store_.floor) return;
    store_.snapshots[*version] = store_.timeline();
    take(book_.on_snapshot({*version}));
  }
  void drop_old() {
    if (!is_waiting_ && !told_.empty())
      store_.drop_below(*std::next(told_.begin(), static_cast<long>(any(told_.size()))));
    told_.erase(told_.begin(), told_.lower_bound(store_.floor));
  }
  void go_back() {
    if (is_waiting_ || committed_ < store_.floor + 1) return;
    const auto version = store_.floor + any(committed_ - store_.floor);
    if (!contains(store_.restorable(), version_id{version})) return;
    auto history = store_.history;
    history.push_back({{store_.timeline().value + 1 + any(2)}, {version}});
    begun_.reset();
    store_.go_back(history, version);
    told_.erase(told_.upper_bound(version), told_.end());
    committed_ = version;
    book_.restart(history, {version});
    begin_stream();
  }
  /// What it has on its disk is all that it knows.
  void restart_shard() {
    ++shard_.value;
    book_ = copy_book{bug_};
    stream_ = copy_stream{};
    record_.reset();
    snapshot_.reset();
    begun_.reset();
    const auto end = store_.end();
    book_.restart(store_.history, {end});
    told_.clear();
    is_waiting_ = true;
    agent_tells();
  }
  void take(const released_versions& news) {
    if (news.committed) committed_ = std::max(committed_, news.committed->value);
    for (const auto one : news.snapshots) told_.insert(one.value);
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
    send({copy_kind::hello, {}});
  }
  void pump() {
    while (stream_.runs() && stream_.has_room()) {
      if (!record_)
        if (const auto item = stream_.next(store_.described())) {
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
    if (chance(30)) keeper_.damage(random_());
    stream_.end();
    agent_tells();
  }
  /// R25: where the copy is whole the PS shard goes on from it, and lacks nothing.
  void lose_host_of_shard() {
    if (believed_ != keeper_.self) return;
    expect_whole();
    std::swap(store_, keeper_.store);
    lose_keeper(true);
    restart_shard();
  }

  void expect(bool holds, const std::string& what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }
  /// The copy can restore all that the PS shard has said, with the same bits.
  void expect_whole() {
    expect(keeper_.store.end() >= limit(), "the copy lacks what was committed");
    expect(keeper_.store.floor <= store_.floor, "the copy has dropped more than the store");
    for (auto step = std::max(store_.floor, keeper_.store.floor); step < limit(); ++step) {
      const auto own = store_.log.find(step);
      if (own == store_.log.end()) continue;
      const auto copied = keeper_.store.log.find(step);
      expect(copied != keeper_.store.log.end() && copied->second == own->second,
             fmt::format("the copy has not got step {}, or another one", step));
    }
  }
  /// Of a timeline that was left what is below its branch.
  std::uint64_t limit() const {
    const auto branch = protocol::branched_since(store_.history, keeper_.store.timeline());
    return branch ? std::min(committed_, branch->value) : committed_;
  }
  void check() {
    if (book_.counted() != keeper_.self || is_waiting_) return;
    expect_whole();
    for (const auto version : told_)
      expect(version > limit() || keeper_.store.snapshots.contains(version),
             fmt::format("the copy has no snapshot of version {}", version));
  }

  struct piece {
    copy_item item;
    timeline_id made_on;
    std::uint64_t sent = 0;
  };

  bool is_busy_;
  bool is_slow_;
  std::mt19937_64 random_;
  protocol::planted_bug bug_;
  std::string wrong_;
  protocol::time_point now_{};
  bool is_quiet_ = false;
  incarnation shard_{1};
  played_store store_;
  copy_book book_;
  copy_stream stream_;
  std::optional<piece> record_, snapshot_;
  std::optional<std::uint64_t> begun_; ///< version of a snapshot that is being made
  std::uint64_t committed_ = 0;        ///< what the core has heard of
  std::set<std::uint64_t> told_;       ///< snapshots that it has
  bool is_waiting_ = true;             ///< it has not begun
  played_keeper keeper_;
  incarnation believed_{}; ///< the start of the keeper that counts, as the agent has heard
  played_line<played_part> parts_;
  played_line<protocol::copy_standing> answers_;
};

#ifndef DLRUN_PLANTED_BUGS
TEST(copies_of_a_store, hold_all_that_was_committed_whatever_is_lost) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto wrong = played_pair{seed, protocol::planted_bug::none}.run();
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

#else
TEST(copies_of_a_store, each_rule_that_is_broken_on_purpose_is_found) {
  using protocol::planted_bug;
  const std::map<std::string, planted_bug> bugs{
      {"commit_own_log", planted_bug::commit_own_log}, {"count_early", planted_bug::count_early},
      {"newest_base", planted_bug::newest_base},       {"keep_tail", planted_bug::keep_tail},
      {"hold_nothing", planted_bug::hold_nothing},     {"drop_base", planted_bug::drop_base}};
  for (const auto& [name, bug] : bugs) {
    std::uint64_t seed = 1;
    std::string wrong;
    while (seed <= seeds && (wrong = played_pair{seed, bug}.run()).empty()) ++seed;
    EXPECT_NE(wrong, "") << name;
    fmt::print("{}: seed {}: {}\n", name, seed, wrong);
  }
}
#endif

} // namespace
} // namespace dlrun::ps_shard
