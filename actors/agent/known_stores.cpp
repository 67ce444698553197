#include "actors/agent/known_stores.hpp"

#include <tuple>

namespace dlrun::agent {

void known_stores::set(const std::string& host, const std::vector<protocol::held_store>& stores) {
  auto& kept = all_[host];
  kept.clear();
  for (const auto& one : stores) kept[one.shard] = one;
}

const protocol::held_store* known_stores::find(const std::string& host, ps_shard_id shard) const {
  const auto stores = all_.find(host);
  if (stores == all_.end()) return nullptr;
  const auto found = stores->second.find(shard);
  return found == stores->second.end() ? nullptr : &found->second;
}

const std::string* known_stores::best(ps_shard_id shard, const preference& preferred) const {
  const std::string* where = nullptr;
  std::tuple<timeline_id, step_id, incarnation, int> highest;
  for (const auto& [host, stores] : all_) {
    const auto* one = find(host, shard);
    const auto by = one == nullptr ? std::nullopt : preferred(host);
    if (!by) continue;
    const std::tuple rank{one->timeline, one->end, one->opener, *by};
    if (where != nullptr && rank <= highest) continue;
    where = &host;
    highest = rank;
  }
  return where;
}

} // namespace dlrun::agent
