#include "actors/worker/shard_connections.hpp"

namespace dlrun::worker {

std::vector<protocol::directory_entry> shard_connections::on_directory(const protocol::directory& directory) {
  std::vector<protocol::directory_entry> now;
  for (const auto& entry : directory.entries) {
    if (entry.role.kind != protocol::role_kind::ps_shard || entry.role.index >= ps_shards_ || !entry.joined)
      continue;
    auto [at, is_first] = all_.try_emplace({entry.role.index}, connection{.wanted = entry});
    if (!is_first && entry.incarnation <= at->second.wanted.incarnation) continue;
    at->second = {.wanted = entry};
    now.push_back(entry);
  }
  return now;
}

std::vector<protocol::directory_entry> shard_connections::on_tick(protocol::time_point now) {
  std::vector<protocol::directory_entry> again;
  for (auto& [shard, one] : all_) {
    if (one.is != state::unconnected || now - one.since < retry_after_) continue;
    one.is = state::connecting;
    again.push_back(one.wanted);
  }
  return again;
}

bool shard_connections::on_connected(ps_shard_id shard, incarnation start) {
  auto* one = find(shard, start);
  if (one != nullptr) one->is = state::connected;
  return one != nullptr;
}

bool shard_connections::on_unconnected(ps_shard_id shard, incarnation start, protocol::time_point now) {
  auto* one = find(shard, start);
  if (one == nullptr) return false;
  one->is = state::unconnected;
  one->since = now;
  return true;
}

shard_connections::connection* shard_connections::find(ps_shard_id shard, incarnation start) {
  const auto found = all_.find(shard);
  return found == all_.end() || found->second.wanted.incarnation != start ? nullptr : &found->second;
}

} // namespace dlrun::worker
