#include "tests/simulation/host_checks.hpp"

#include "tests/simulation/world.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::simulation {

using protocol::duration;

namespace {

/// Beats are on their way, and ticks apart; clocks differ by 5 %.
constexpr auto slack = std::chrono::milliseconds(15);
/// Silence that is known has ended, or is a loss.
constexpr auto known_after = std::chrono::milliseconds(60);

} // namespace

host_checks::host_checks(world& where, const agent::host_roster& roster)
    : world_(where)
    , roster_(roster)
    , runs_since_(where.now()) {}

void host_checks::root_stopped() { stopped_at_ = world_.now(); }
void host_checks::root_goes_on() { runs_since_ = world_.now(); }

void host_checks::asked(const protocol::role_name& role, incarnation start) {
  asked_[{role, start}] = world_.now();
}

/// By the timeline, then by the end. A store with nothing in it is as good as none: a start that
/// was given up may open one after its host has told what it holds.
std::optional<std::uint32_t> host_checks::better_than(ps_shard_id shard, std::uint32_t host) const {
  auto best =
      std::max(world_.stores().rank(shard, host), std::optional(std::pair{timeline_id{0}, version_id{0}}));
  std::optional<std::uint32_t> found;
  for (std::uint32_t other = 0; other < world_.hosts().count(); ++other) {
    const auto rank = world_.stores().rank(shard, other);
    if (rank <= best) continue;
    best = rank;
    found = other;
  }
  return found;
}

void host_checks::check_place(const protocol::role_name& role, incarnation start, std::uint32_t host) {
  if (!ordered_.emplace(role, start, host).second) return;
  const auto known = places_.find(role);
  const bool was_there = known != places_.end() && known->second == host;
  places_[role] = host;
  const ps_shard_id shard{role.index};
  if (was_there && world_.stores().rank(shard, host)) return;
  const auto better = better_than(shard, host);
  if (!better) return;
  const auto name = name_of_host(*better);
  if (*better == 0 || roster_.boot_of(name))
    broken("R30", "{}/{} is to begin on host {}, and host {} has a better store", protocol::to_string(role),
           start, name_of_host(host), name);
  const auto waited = world_.now() - asked_.at({role, start});
  if (roster_.is_expected(name) && waited < store_patience * 9 / 10)
    broken("R30",
           "{}/{} is to begin on host {} after {} ms, and its store is on host {}, which may come back",
           protocol::to_string(role), start, name_of_host(host), waited.count() / 1000, name);
  world_.say(nullptr, "the store of {} on host {} was waited for in vain", protocol::to_string(role), name);
  world_.happened().disk_lost = world_.happened().ps_shard_lost = true;
}

void host_checks::check_silence(std::uint32_t host, protocol::time_point joined) const {
  const auto since = world_.hosts().unable_since(host);
  if (!since) return;
  const auto unheard = world_.now() - std::max({*since, runs_since_, joined});
  if (unheard > simulated_watch_rules(protocol::planted_bug::none).silence_max + slack)
    broken("R29", "host {} has been unable to answer for {} ms, and counts as there", name_of_host(host),
           unheard.count() / 1000);
}

void host_checks::check_loss(const protocol::job_event& lost, std::uint64_t boot) const {
  if (!lost.place.reason.starts_with("it has answered no beat")) return;
  if (!world_.calm() && (world_.plan().loss > 0 || world_.plan().slowness > 0)) return;
  const auto host = host_of_name(lost.place.host);
  const auto agents = world_.living(host_agent_role(host));
  if (std::ranges::none_of(agents, [&](const auto* one) { return one->self().incarnation.value == boot; }))
    return;
  const auto& out = world_.hosts().outage_of(host);
  const bool was_stopped = world_.now() - runs_since_ < known_after;
  const auto first = (was_stopped ? stopped_at_ : world_.now()) - known_after;
  if (!out.since && (!out.ended || *out.ended < first))
    broken("R29", "host {} is given up, and could answer all the time: {}", lost.place.host,
           lost.place.reason);
}

} // namespace dlrun::simulation
