#include "tests/simulation/cluster_hosts.hpp"

namespace dlrun::simulation {

using protocol::time_point;

namespace {

void set(std::optional<time_point>& since, bool holds, time_point now) {
  if (!holds)
    since.reset();
  else if (!since)
    since = now;
}

} // namespace

std::optional<time_point> cluster_hosts::unable_since(std::uint32_t host) const {
  const auto& one = hosts_.at(host);
  std::optional<time_point> first;
  for (const auto& reason : {one.deaf_since, one.mute_since, one.down_since, one.stopped_since})
    if (reason && (!first || *reason < *first)) first = reason;
  return first;
}

time_point cluster_hosts::shows(std::uint32_t host, time_point at) const {
  if (clocks_.empty()) return at;
  const auto passed = static_cast<double>((at - beginning).count()) * clocks_.at(host).rate;
  return beginning + clocks_.at(host).ahead + protocol::duration(static_cast<std::int64_t>(passed));
}

void cluster_hosts::note(time_point now) {
  for (std::uint32_t host = 1; host < count_; ++host) {
    auto& one = hosts_[host];
    set(one.cut, !passes_both_ways(0, host), now);
    set(one.deaf_since, !passes(0, host), now);
    set(one.mute_since, !passes(host, 0), now);
    set(one.down_since, one.down > 0, now);
    set(one.stopped_since, one.stopped > 0, now);
    const bool is_out = one.cut || one.down > 0 || one.stopped > 0;
    if (is_out == one.out.since.has_value()) continue;
    if (is_out) {
      one.out.since = now;
    } else {
      one.out.since.reset();
      one.out.ended = now;
    }
  }
}

void cluster_hosts::cut(std::uint32_t from, std::uint32_t to, time_point now) {
  ++cuts_[{from, to}];
  note(now);
}

void cluster_hosts::mend(std::uint32_t from, std::uint32_t to, time_point now) {
  const auto at = cuts_.find({from, to});
  if (at != cuts_.end() && --at->second == 0) {
    cuts_.erase(at);
    mended_[{from, to}] = now;
  }
  note(now);
}

void cluster_hosts::mend_all(time_point now) {
  for (const auto& [way, times] : cuts_) mended_[way] = now;
  cuts_.clear();
  note(now);
}

void cluster_hosts::take_down(std::uint32_t host, time_point now) {
  ++hosts_[host].down;
  note(now);
}

void cluster_hosts::bring_up(std::uint32_t host, time_point now) {
  --hosts_[host].down;
  note(now);
}

void cluster_hosts::stop(std::uint32_t host, time_point now) {
  ++hosts_[host].stopped;
  note(now);
}

void cluster_hosts::go_on(std::uint32_t host, time_point now) {
  --hosts_[host].stopped;
  note(now);
}

void cluster_hosts::lose_for_ever(std::uint32_t host, time_point now) {
  hosts_[host].gone = true;
  take_down(host, now);
}

} // namespace dlrun::simulation
