#include "actors/agent/host_admission.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::agent {
namespace {

/// How many hosts are there on which PS shards do not stay, the root's included.
std::size_t passing_there(const std::string& root, const host_roster& roster, const placement& places) {
  const auto is_passing = [&](const std::string& host) {
    const auto is = places.standing_of(host);
    return is == standing::preemptible || is == standing::for_workers;
  };
  const auto states = roster.states();
  const auto others = std::ranges::count_if(
      states, [&](const auto& one) { return one.second == host_state::there && is_passing(one.first); });
  return static_cast<std::size_t>(others) + (is_passing(root) ? 1 : 0);
}

} // namespace

/// The address tells whether it is another host.
result<void> host_admission::check(const arriving_host& who, const host_roster& roster) const {
  if (rules_.way_to_join.empty())
    return fail(error_code::bad_usage, "no host may join this job: its list of hosts has no 'join:'");
  if (who.name == rules_.root)
    return fail(error_code::bad_usage,
                fmt::format("host {} is the one where the root runs: join under another name", who.name));
  for (const auto& [host, address] : rules_.addresses)
    if (address == who.address && host != who.name &&
        (host == rules_.root || roster.state_of(host) != host_state::away))
      return fail(
          error_code::in_use,
          fmt::format("{} is the address of host {}, which the job has: a host joins once", address, host));
  const auto joined = std::ranges::count_if(
      places_, [&](const auto& one) { return roster.state_of(one.first) != host_state::away; });
  const auto count = listed_ + static_cast<std::size_t>(joined);
  if (count < rules_.hosts_max) return {};
  return fail(
      error_code::in_use,
      fmt::format("the job has {} hosts, and join.hosts_max of its list lets no more be there", count));
}

result<admission> host_admission::admit(const arriving_host& who, host_roster& roster,
                                        protocol::time_point now) {
  const bool is_known = roster.state_of(who.name) != host_state::away; // which says more
  if (auto fine = is_known ? result<void>{} : check(who, roster); !fine) return tl::unexpected(fine.error());
  const auto attempt = roster.admit(who.name, now);
  if (!attempt) return tl::unexpected(attempt.error());
  rules_.addresses[who.name] = who.address;
  return admission{who.name, places_.try_emplace(who.name, next_place()).first->second, *attempt};
}

bool host_admission::await_return(const returning_host& one, host_roster& roster) {
  const auto& name = one.who.name;
  if (rules_.way_to_join.empty() || one.index < listed_ || rules_.addresses.contains(name)) return false;
  roster.await_return(name);
  rules_.addresses[name] = one.who.address;
  places_[name] = one.index;
  return true;
}

/// Behind all that there are: an earlier root may have given places of which no host is left.
std::uint32_t host_admission::next_place() const {
  auto next = static_cast<std::uint32_t>(listed_);
  for (const auto& [host, place] : places_) next = std::max(next, place + 1);
  return next;
}

std::string host_admission::address_of(const std::string& host) const {
  const auto found = rules_.addresses.find(host);
  return found == rules_.addresses.end() ? "" : found->second;
}

std::string host_admission::awaited(const host_roster& roster, const placement& places) const {
  const auto there = 1 + roster.there() + roster.drained_away();
  const auto staying = there - passing_there(rules_.root, roster, places);
  if (there >= rules_.hosts_min && staying >= rules_.hosts_min_staying) return "";
  const auto coming = roster.enrolling();
  const auto on_the_way = coming == 0 ? "" : fmt::format(", {} get ready", coming);
  if (there < rules_.hosts_min)
    return fmt::format("{} of {} hosts are there{}; {}", there, rules_.hosts_min, on_the_way,
                       rules_.way_to_join);
  return fmt::format("{} of {} hosts are there on which PS shards stay, beside {} where they do not{}; {}",
                     staying, rules_.hosts_min_staying, there - staying, on_the_way, rules_.way_to_join);
}

} // namespace dlrun::agent
