/// A job of several hosts, one or more of which are drained: what runs where, as the agent and its
/// launcher keep it.
#pragma once

#include "actors/agent/host_drains.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <utility>

namespace dlrun::agent::test_drains {

using namespace std::chrono_literals;
using protocol::keeper_role;
using protocol::ps_shard_role;
using protocol::role_kind;
using protocol::role_name;
using protocol::stop_how;
using protocol::worker_role;

inline constexpr role_name coordinator{role_kind::coordinator, 0};
inline constexpr auto shard0 = ps_shard_role({0});
inline constexpr auto shard1 = ps_shard_role({1});
inline constexpr auto keeper0 = keeper_role({0});
inline constexpr auto keeper1 = keeper_role({1});
inline constexpr std::uint32_t shard_count = 2;

struct job_options {
  std::uint32_t copies = 1; ///< of each PS shard
  bool coordinator_moves = false;
  std::uint32_t workers = 3;
  bool copies_may_wait = false;
  std::uint32_t root_cpus = 2; ///< 0: the root is spared
  protocol::planted_bug bug = protocol::planted_bug::none;
  bool on_gpus = false;                ///< workers compute on those of the others; the root's host has none
  std::set<std::string> preemptible{}; ///< of all hosts
  std::map<std::string, protocol::host_takes> takes{}; ///< likewise; others: any
  std::map<std::string, std::string> machines{};       ///< likewise; others: one of their own
};

/// What the stores of PS shards hold.
struct kept_steps {
  /// The next step of that PS shard.
  void commit(std::uint32_t shard, const std::vector<std::string>& hosts) {
    ++committed[shard];
    for (const auto& host : hosts) stores[shard][host] = committed[shard];
  }
  /// A PS shard starts there.
  void begin(std::uint32_t shard, const std::string& host) {
    has_lost_any = has_lost_any || stores[shard][host] < committed[shard];
  }
  /// With its disk.
  void lose(const std::string& host) {
    for (auto& [shard, there] : stores) there.erase(host);
  }

  std::map<std::uint32_t, std::uint64_t> committed{};
  std::map<std::uint32_t, std::map<std::string, std::uint64_t>> stores{}; ///< by host
  bool has_lost_any = false; ///< a PS shard began from a store that lacks committed steps
};

/// PS shards 0 and 1, their keepers if there are copies, and workers; alpha is the root's host.
/// Between two looks each PS shard commits a step, in all stores that count.
class drained_hosts {
public:
  explicit drained_hosts(const std::vector<std::string>& others, const job_options& job = {})
      : keepers{protocol::keeper_roles(shard_count, job.copies)}
      , places_{"alpha", 1, job.coordinator_moves, job.copies_may_wait, job.on_gpus, job.bug}
      , hosts_{{}, others}
      , preemptible_{job.preemptible}
      , takes_{job.takes}
      , machines_{job.machines}
      , bug_{job.bug} {
    drains = host_drains{"alpha", {}, bug_};
    places_.add_host("alpha", {.cpus = job.root_cpus,
                               .preemptible = preemptible_.contains("alpha"),
                               .takes = takes_["alpha"],
                               .machine = machines_["alpha"]});
    for (const auto& one : others) come(one);
    start(coordinator);
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) start(ps_shard_role({shard}));
    for (std::uint32_t worker = 0; worker < job.workers; ++worker) start(worker_role({worker}));
    for (const auto& keeper : keepers) start(keeper);
  }

  // ---- what happens

  void come(const std::string& host) {
    roster_events ignored;
    if (!hosts_.states().contains(host)) static_cast<void>(hosts_.admit(host, now_)); // by itself
    hosts_.on_joined(host, ++boots_, now_, ignored);
    places_.add_host(host, {.cpus = 2,
                            .gpus = 1,
                            .preemptible = preemptible_.contains(host),
                            .takes = takes_[host],
                            .machine = machines_[host]});
  }
  void lose(const std::string& host) {
    hosts_.let_go(host, now_);
    places_.remove_host(host);
    steps.lose(host);
    const auto before = roles_;
    for (const auto& one : before)
      if (one.incarnation != dlrun::incarnation{} && places_.host_of(one.role) == host) die(one.role);
  }
  /// The start in hand is over, and the next one follows.
  void die(const role_name& role) {
    auto& view = of(role);
    view.pid = 0;
    view.state = "down";
    start(role);
  }
  /// The copy on the host of that keeper has all that was committed now.
  void fill(const role_name& keeper) {
    if (of(keeper).pid == 0) return;
    of(keeper).state = "whole";
    commit(protocol::shard_of(keeper));
  }
  void fill_all() {
    for (const auto& keeper : keepers) fill(keeper);
  }

  /// The root is killed, with what ran on its host. The next one takes over the rest, and believes
  /// of no copy that it is whole before it hears so.
  void return_root() {
    drains = host_drains{"alpha", stages(), bug_};
    to_move_.clear();
    const auto before = roles_;
    for (const auto& one : before) {
      if (one.role.kind == role_kind::keeper && one.pid != 0) of(one.role).state = "filling";
      of(one.role).is_leaving = false;
      if (host_of(one.role) == "alpha") die(one.role);
    }
  }
  void end() { is_ending_ = true; }

  // ---- the operator

  result<void> drain(const std::string& host) {
    const auto begun = drains.begin(host, sight());
    if (!begun) return tl::unexpected(begun.error());
    told_ = begun->text;
    places_.set_closed(host, true);
    return {};
  }
  result<void> undo(const std::string& host) {
    const auto done = drains.undo(host, sight());
    if (!done) return tl::unexpected(done.error());
    places_.set_closed(host, false);
    return {};
  }
  /// What is to go next; nothing of it happens yet.
  std::vector<std::string> look() {
    std::vector<std::string> all;
    for (const auto& one : step().departures) all.push_back(describe(one));
    return all;
  }
  drain_steps step() {
    const auto before = roles_;
    for (const auto& one : before) // those that wait for a host
      if (host_of(one.role).empty() && places_.can_put(one.role)) start(one.role);
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) commit({shard});
    auto made = drains.next(sight(), now_);
    for (const auto& one : made.events) {
      events_.push_back(one.event);
      told_ = one.text;
    }
    for (const auto& one : made.departures) {
      of(one.role).is_leaving = true;
      if (one.how == stop_how::leave || one.role.kind == role_kind::keeper) to_move_.insert(one.role);
    }
    for (const auto& role : made.stays) to_move_.erase(role);
    now_ += 100ms;
    return made;
  }
  /// Who is told that it stays.
  std::vector<std::string> look_who_stays() {
    std::vector<std::string> all;
    for (const auto& role : step().stays) all.push_back(protocol::to_string(role));
    return all;
  }
  /// It happens at once, until nothing goes any more.
  std::vector<std::string> settle() {
    std::vector<std::string> all;
    int turns = 0;
    for (auto next = step(); !next.departures.empty() && turns < 50; next = step(), ++turns)
      for (const auto& one : next.departures) {
        all.push_back(describe(one));
        die(one.role);
      }
    EXPECT_LT(turns, 50) << "it comes to rest";
    return all;
  }

  // ---- what there is

  std::string host_of(const role_name& role) const { return places_.host_of(role); }
  role_view& of(const role_name& role) { return *std::ranges::find(roles_, role, &role_view::role); }
  const drain_view& view(const std::string& host) const { return drains.all().at(host); }
  std::map<std::string, drain_stage> stages() const {
    std::map<std::string, drain_stage> all;
    for (const auto& [host, one] : drains.all()) all[host] = one.stage;
    return all;
  }
  bool is_drained(const std::string& host) const { return view(host).stage == drain_stage::drained; }
  std::vector<std::string> roles_on(const std::string& host) const {
    std::vector<std::string> all;
    for (const auto& one : roles_)
      if (one.incarnation != dlrun::incarnation{} && host_of(one.role) == host)
        all.push_back(protocol::to_string(one.role));
    return all;
  }
  bool are_all_whole() const {
    return std::ranges::all_of(roles_, [](const auto& one) {
      return one.role.kind != role_kind::keeper || (one.pid != 0 && one.state == "whole");
    });
  }
  const std::vector<std::string>& events() const { return events_; }
  const std::string& told() const { return told_; } ///< of the newest event
  placement& places() { return places_; }
  void pass(protocol::duration time) { now_ += time; }

  std::vector<role_name> keepers; ///< of all copies
  host_drains drains{"alpha"};
  kept_steps steps{};

private:
  static std::string describe(const departure& what) {
    return protocol::to_string(what.role) + (what.how == stop_how::leave ? " leaves"
                                             : what.how == stop_how::end ? " ends"
                                                                         : " is killed");
  }
  drain_sight sight() const { return {roles_, places_, hosts_, is_ending_}; }
  /// Keepers whose copies of that PS shard are.
  std::vector<role_name> whole(ps_shard_id shard) const {
    std::vector<role_name> all;
    for (const auto& one : roles_)
      if (protocol::keeps_copy_of(one.role, shard) && one.pid != 0 && one.state == "whole" &&
          places_.has_host(host_of(one.role)))
        all.push_back(one.role);
    return all;
  }
  /// As the agent and hosted_roles do it.
  void start(const role_name& role) {
    if (std::ranges::find(roles_, role, &role_view::role) == roles_.end())
      roles_.push_back({.role = role, .incarnation = {}, .state = {}});
    auto& view = of(role);
    view.incarnation = {++starts_};
    view.state = role.kind == role_kind::keeper ? "filling" : "training";
    view.is_leaving = false;
    view.pid = 100;
    if (!places_.can_put(role)) {
      places_.forget(role);
      view.pid = 0;
      return;
    }
    const bool moves = to_move_.erase(role) != 0;
    const auto copies = role.kind == role_kind::ps_shard ? whole({role.index}) : std::vector<role_name>{};
    if (copies.empty())
      places_.put(role, false, moves);
    else
      places_.put_on_copy({role.index}, copies, moves);
    if (role.kind != role_kind::ps_shard) return;
    steps.begin(role.index, host_of(role));
    for (const auto& keeper : keepers_in_the_way(places_)) start(keeper);
  }
  /// The next step, in the store of the PS shard and in its copies that are whole.
  void commit(ps_shard_id shard) {
    std::vector<std::string> hosts{host_of(ps_shard_role(shard))};
    for (const auto& keeper : whole(shard)) hosts.push_back(host_of(keeper));
    steps.commit(shard.value, hosts);
  }

  placement places_;
  host_roster hosts_;
  std::set<std::string> preemptible_;
  std::map<std::string, protocol::host_takes> takes_;
  std::map<std::string, std::string> machines_;
  protocol::planted_bug bug_;
  bool is_ending_ = false;
  std::vector<role_view> roles_;
  std::set<role_name> to_move_; ///< they were told so, and have not ended yet
  std::vector<std::string> events_;
  std::string told_;
  protocol::time_point now_{1h};
  std::uint64_t boots_ = 0;
  std::uint64_t starts_ = 0;
};

/// PS shard 0 is on alpha, 1 on beta; the copies are on gamma. Each has a worker.
class three_hosts : public testing::Test {
protected:
  three_hosts() {
    job.fill_all();
    EXPECT_EQ(job.host_of(shard0), "alpha");
    EXPECT_EQ(job.host_of(shard1), "beta");
    EXPECT_EQ(job.host_of(keeper0), "gamma");
    EXPECT_EQ(job.host_of(keeper1), "gamma");
  }
  std::string refusal(const result<void>& done) {
    EXPECT_FALSE(done.has_value());
    if (done) return "";
    EXPECT_EQ(done.error().code, error_code::bad_usage);
    return done.error().message;
  }

  drained_hosts job{{"beta", "gamma"}};
};

} // namespace dlrun::agent::test_drains
