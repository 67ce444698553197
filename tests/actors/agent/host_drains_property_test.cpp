// Whatever happens to hosts that are emptied (R37); built once more with planted bugs.
#include "tests/actors/agent/drained_hosts_fixture.hpp"

#include <fmt/format.h>
#include <random>
#include <set>
#include <utility>

namespace dlrun::agent::test_drains {
namespace {

constexpr unsigned seeds = 120;

struct wild_job {
  std::vector<std::string> others;
  bool copies_may_wait = false;
  std::uint32_t copies = 1;
  std::uint32_t root_cpus = 2;
  std::set<std::string> preemptible{};
  std::map<std::string, protocol::host_takes> takes{};
  std::map<std::string, std::string> machines{};
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Hosts are lost, while all copies are whole or when they are drained, as many at once as there
/// are copies, and come back; roles and
/// the root die; drains begin and are undone; in any order. When that is over every host that is
/// still to be empty gets so. Once all drains are undone all copies are whole again.
class played_drains {
public:
  played_drains(unsigned seed, wild_job what)
      : source_{seed}
      , what_{std::move(what)}
      , job_{what_.others,
             {.copies = what_.copies,
              .coordinator_moves = true,
              .copies_may_wait = what_.copies_may_wait,
              .root_cpus = what_.root_cpus,
              .bug = what_.bug,
              .preemptible = what_.preemptible,
              .takes = what_.takes,
              .machines = what_.machines}} {}

  /// @returns what was wrong; "" when nothing was
  std::string run() {
    for (int turn = 0; turn < 200; ++turn) {
      for (unsigned at_once = 1 + any(3); at_once > 0; --at_once) disturb();
      carry_out(job_.step());
    }
    for (const auto& host : what_.others)
      if (!job_.places().has_host(host)) job_.come(host);
    calm_down();
    for (const auto& host : wanted_)
      if (!job_.stages().contains(host))
        note(fmt::format("that {} is to be drained is forgotten", host));
      else if (!job_.is_drained(host))
        note(fmt::format("{} is not drained: {}", host, job_.view(host).waits_for));
    for (const auto& [host, stage] : job_.stages()) {
      if (!job_.roles_on(host).empty()) note(fmt::format("{} is not empty", host));
      static_cast<void>(job_.undo(host));
    }
    calm_down();
    if (!job_.are_all_whole()) note("with all hosts in use a copy is missing");
    spread_out();
    return wrong_;
  }

private:
  unsigned any(unsigned below) { return std::uniform_int_distribution<unsigned>{0, below - 1}(source_); }

  void note(const std::string& wrong) {
    if (wrong_.empty()) wrong_ = wrong;
  }
  void disturb() {
    const auto& host = what_.others[any(static_cast<unsigned>(what_.others.size()))];
    switch (any(16)) {
    case 0:
    case 1:
      if (job_.drain(host)) wanted_.insert(host);
      break;
    case 2:
    case 3:
      if (job_.undo(host)) wanted_.erase(host);
      break;
    case 4: job_.return_root(); break;
    case 5:
    case 6: job_.die(any(2) ? ps_shard_role({any(2)}) : any_keeper()); break;
    case 7:
    case 8: job_.die(any(2) ? worker_role({any(3)}) : coordinator); break;
    case 9:
    case 10:
      if (!job_.places().has_host(host))
        job_.come(host);
      else if (job_.are_all_whole())
        lose_with_others(host);
      else if (job_.stages().contains(host) && job_.is_drained(host))
        job_.lose(host);
      break;
    case 11: job_.pass(shard_spread::patience); break;
    default: job_.fill(any_keeper());
    }
    if (has_two_stores_on_one_host()) note("two stores of a PS shard are on one host");
    if (has_worker_among_ps_shards()) note("a worker is on a host that takes PS shards alone");
    if (job_.steps.has_lost_any) note("a PS shard began from a store that lacks committed steps");
  }
  role_name any_keeper() { return job_.keepers[any(static_cast<unsigned>(job_.keepers.size()))]; }
  /// Of its keepers that run, and of its own.
  bool has_two_stores_on_one_host() {
    auto stores = job_.keepers;
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) stores.push_back(ps_shard_role({shard}));
    std::set<std::pair<std::uint32_t, std::string>> seen;
    return std::ranges::any_of(stores, [&](const auto& role) {
      const auto host = job_.host_of(role);
      return job_.of(role).pid != 0 && job_.places().has_host(host) &&
             !seen.emplace(protocol::shard_of(role).value, host).second;
    });
  }
  bool has_worker_among_ps_shards() {
    return std::ranges::any_of(what_.takes, [&](const auto& one) {
      return one.second == protocol::host_takes::ps_shards &&
             std::ranges::any_of(job_.roles_on(one.first),
                                 [](const auto& role) { return role.starts_with("worker"); });
    });
  }
  /// As many hosts as there are copies may be.
  void lose_with_others(const std::string& host) {
    job_.lose(host);
    for (std::uint32_t more = 1; more < what_.copies; ++more)
      if (const auto& other = what_.others[any(static_cast<unsigned>(what_.others.size()))];
          job_.places().has_host(other))
        job_.lose(other);
  }
  void calm_down() {
    for (int turn = 0; turn < 20; ++turn) {
      job_.fill_all();
      carry_out(job_.step());
    }
    job_.fill_all();
  }
  /// No host with cores is left out, and then nothing moves any more.
  void spread_out() {
    for (int turn = 0; turn < 6; ++turn) {
      job_.fill_all();
      carry_out(job_.step());
      job_.pass(shard_spread::patience);
    }
    job_.pass(shard_spread::patience);
    for (int turn = 0; turn < 3; ++turn)
      if (!job_.step().departures.empty()) note("what is spread does not come to rest");
    std::set<std::string> hosts;
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
      hosts.insert(job_.host_of(ps_shard_role({shard})));
      if (is_badly_placed({shard}))
        note("the host of a copy is better for its PS shard, which does not move");
    }
    if (const auto keeper =
            std::ranges::find_if(job_.keepers, [&](const auto& one) { return is_badly_kept(one); });
        keeper != job_.keepers.end())
      note("a better host is free for a copy, which does not move");
    if (what_.root_cpus != 0 && what_.preemptible.empty() && what_.takes.empty() && what_.machines.empty() &&
        hosts.size() < shard_count)
      note("PS shards are on one host");
    if (what_.root_cpus == 0 && hosts.contains("alpha")) note("a PS shard is on a host without cores");
  }
  bool is_badly_kept(const role_name& keeper) {
    const auto& places = job_.places();
    const auto here = job_.host_of(keeper);
    const bool is_last_resort = places.standing_of(here) == standing::spared;
    return std::ranges::any_of(what_.others, [&](const auto& host) {
      if (!places.is_open(host) || !places.is_free_for(host, keeper)) return false;
      const bool shares = is_beside_another(host, keeper), shares_here = is_beside_another(here, keeper);
      return is_last_resort || (shares_here && !shares) ||
             (shares_here == shares && places.standing_of(host) < places.standing_of(here));
    });
  }
  /// On its machine, on another host, is the PS shard or another copy.
  bool is_beside_another(const std::string& host, const role_name& keeper) {
    auto stores = job_.keepers;
    stores.push_back(ps_shard_role(protocol::shard_of(keeper)));
    const auto& machine = what_.machines[host];
    return !machine.empty() && std::ranges::any_of(stores, [&](const auto& role) {
      const auto other = job_.host_of(role);
      return role != keeper && protocol::shard_of(role) == protocol::shard_of(keeper) && other != host &&
             what_.machines[other] == machine;
    });
  }
  bool is_badly_placed(ps_shard_id shard) {
    const auto is = job_.places().standing_of(job_.host_of(protocol::ps_shard_role(shard)));
    return std::ranges::any_of(job_.keepers, [&](const auto& keeper) {
      return protocol::keeps_copy_of(keeper, shard) && job_.places().standing_of(job_.host_of(keeper)) < is;
    });
  }
  bool is_missed(const role_name& role) {
    const auto& keeper = job_.of(role);
    const bool is_whole = keeper.pid != 0 && keeper.state == "whole";
    const bool may_wait = what_.copies_may_wait && !job_.places().has_open_host_for_copy(role);
    return !is_whole && !may_wait;
  }
  void carry_out(const drain_steps& steps) {
    for (const auto& [host, stage] : steps.changes) {
      if (stage != drain_stage::drained) continue;
      if (!job_.roles_on(host).empty()) note(fmt::format("{} is called drained, and has a role", host));
      if (std::ranges::any_of(job_.keepers, [&](const auto& one) { return is_missed(one); }))
        note(fmt::format("{} is called drained before a copy is whole", host));
    }
    for (const auto& one : steps.departures) carry_out(one.role);
  }
  void carry_out(const role_name& role) {
    const auto before = job_.host_of(role);
    const bool is_kept = role.kind == role_kind::keeper && !what_.copies_may_wait;
    if (is_kept && !job_.places().has_open_host_for_copy(role))
      note("a copy that was asked for is given up, and there is no host for another");
    job_.die(role);
    if (role.kind == role_kind::ps_shard && job_.host_of(role) == before)
      note("a PS shard has left, and starts where it was");
    if (job_.steps.has_lost_any) note("a PS shard began from a store that lacks committed steps");
  }

  std::mt19937 source_;
  std::set<std::string> wanted_; ///< to be empty
  wild_job what_;
  drained_hosts job_;
  std::string wrong_;
};

using enum protocol::host_takes;

const std::vector<wild_job> wild_jobs{
    {{"beta", "gamma", "delta", "epsilon"}, false},
    {{"beta", "gamma"}, false},
    {{"beta", "gamma", "delta", "epsilon"}, true},
    {{"beta", "gamma"}, true},
    {{"beta"}, true},
    {{"beta", "gamma", "delta", "epsilon"}, false, 2},
    {{"beta", "gamma", "delta"}, false, 2},
    {{"beta", "gamma"}, false, 1, 0},
    {{"beta", "gamma", "delta"}, true, 1, 0},
    {{"beta", "gamma", "delta", "epsilon"}, false, 1, 2, {"beta", "delta"}},
    {{"beta", "gamma", "delta", "epsilon"}, true, 2, 2, {"beta", "delta"}},
    {{"beta", "gamma"}, false, 1, 2, {"beta", "gamma"}},
    {{"beta", "gamma"}, false, 1, 2, {"alpha"}},
    {{"beta", "gamma", "delta", "epsilon"},
     false,
     1,
     0,
     {"epsilon"},
     {{"beta", ps_shards}, {"gamma", ps_shards}, {"delta", workers}, {"epsilon", workers}}},
    {{"beta", "gamma", "delta"},
     true,
     1,
     2,
     {},
     {{"alpha", ps_shards}, {"beta", ps_shards}, {"gamma", workers}}},
    {{"beta", "gamma", "delta", "epsilon"},
     false,
     1,
     2,
     {},
     {},
     {{"alpha", "m"}, {"beta", "m"}, {"gamma", "n"}, {"delta", "n"}}},
    {{"beta", "gamma", "delta", "epsilon"},
     true,
     2,
     0,
     {},
     {},
     {{"beta", "m"}, {"gamma", "m"}, {"delta", "n"}, {"epsilon", "n"}}}};

#ifndef DLRUN_PLANTED_BUGS
TEST(drained_hosts_whatever_happens, get_empty_in_the_end_and_none_is_called_drained_before) {
  for (const auto& job : wild_jobs)
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      const auto wrong = played_drains{seed, job}.run();
      ASSERT_EQ(wrong, "") << "seed " << seed << ", " << job.others.size() << " other hosts, copies "
                           << (job.copies_may_wait ? "may" : "do not") << " wait, " << job.copies
                           << " of each";
    }
}
#else
using protocol::planted_bug;

TEST(drained_hosts_whatever_happens, each_rule_that_is_broken_on_purpose_is_found) {
  const std::vector<std::pair<const char*, planted_bug>> bugs{
      {"leave_bare", planted_bug::leave_bare},     {"drain_early", planted_bug::drain_early},
      {"drop_asked", planted_bug::drop_asked},     {"forget_drain", planted_bug::forget_drain},
      {"keep_copy", planted_bug::keep_copy},       {"promote_any", planted_bug::promote_any},
      {"share_copies", planted_bug::share_copies}, {"restless", planted_bug::restless},
      {"settled", planted_bug::settled},           {"loyal", planted_bug::loyal},
      {"one_machine", planted_bug::one_machine},   {"crowd_in", planted_bug::crowd_in}};
  for (const auto& [name, bug] : bugs) {
    std::string wrong;
    for (unsigned seed = 1; seed <= seeds && wrong.empty(); ++seed)
      for (auto job : wild_jobs) {
        job.bug = bug;
        wrong = played_drains{seed, job}.run();
        if (wrong.empty()) continue;
        fmt::print("{}: seed {}, {} other hosts, {} copies: {}\n", name, seed, job.others.size(), job.copies,
                   wrong);
        break;
      }
    EXPECT_NE(wrong, "") << name;
  }
}
#endif

} // namespace
} // namespace dlrun::agent::test_drains
