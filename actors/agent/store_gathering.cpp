#include "actors/agent/store_gathering.hpp"

namespace dlrun::agent {

gathered_stores store_gathering::look(const hosted_roles& hosts) const {
  gathered_stores found;
  for (ps_shard_id shard{0}; shard.value < last_.ps_shards; ++shard.value) {
    if (holds(hosts.places().stores().find(hosts.root(), shard), last_)) continue;
    const auto* best = hosts.places().find_store(shard);
    if (best != nullptr && holds(hosts.places().stores().find(*best, shard), last_))
      found.bring.push_back({shard, *best});
    else
      found.missing.push_back(shard);
  }
  return found;
}

bool store_gathering::is_settled(const gathered_stores& found, const hosted_roles& hosts,
                                 protocol::time_point now) {
  if (!hosts.starts().is_empty()) return false; // they are being killed, and have their stores open
  const bool some_come = !hosts.roster().on_their_way().empty();
  if (found.missing.empty()) return !some_come || now - *began_ >= patience;
  if (some_come || !hosts.joining().awaited(hosts.roster(), hosts.places()).empty()) {
    quiet_since_.reset();
    return false;
  }
  if (!quiet_since_) quiet_since_ = now;
  return now - *quiet_since_ >= patience;
}

gathered_stores store_gathering::decide(const hosted_roles& hosts, protocol::time_point now) {
  if (!began_) began_ = now;
  auto found = look(hosts);
  found.is_settled = is_settled(found, hosts, now);
  return found;
}

} // namespace dlrun::agent
