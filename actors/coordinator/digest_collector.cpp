#include "actors/coordinator/digest_collector.hpp"

#include <algorithm>

namespace dlrun::coordinator {

digest_collector::digest_collector(std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_of_shard)
    : blocks_of_shard_(std::move(blocks_of_shard)) {
  std::uint32_t blocks = 0;
  for (const auto& [first, last] : blocks_of_shard_) blocks = std::max(blocks, last);
  digests_.resize(blocks * digest_bytes);
}

void digest_collector::begin(timeline_id timeline, version_id version) {
  timeline_ = timeline;
  version_ = version;
  for (std::uint32_t i = 0; i < blocks_of_shard_.size(); ++i) next_[{i}] = blocks_of_shard_[i].first;
}

coordinator_actions digest_collector::requests() const {
  coordinator_actions all;
  for (const auto& [shard, next] : next_)
    if (const auto one = request(shard)) all.emplace_back(*one);
  return all;
}

std::optional<request_digests> digest_collector::request(ps_shard_id shard) const {
  const auto next = next_.find(shard);
  if (next == next_.end()) return std::nullopt;
  const auto left = blocks_of_shard_[shard.value].second - next->second;
  if (left == 0) return std::nullopt;
  return request_digests{shard,
                         {timeline_, version_, next->second, std::min(left, protocol::digest_blocks_max)}};
}

bool digest_collector::take(ps_shard_id shard, const protocol::digest_reply& reply) {
  const auto asked = request(shard);
  if (!asked || reply.first_block != asked->request.first_block ||
      reply.digests.size() != asked->request.count * digest_bytes)
    return false;
  std::copy(reply.digests.begin(), reply.digests.end(),
            digests_.begin() + static_cast<std::ptrdiff_t>(reply.first_block * digest_bytes));
  next_.at(shard) += asked->request.count;
  return true;
}

bool digest_collector::is_complete() const {
  return !next_.empty() && std::all_of(next_.begin(), next_.end(), [&](const auto& one) {
    return one.second == blocks_of_shard_[one.first.value].second;
  });
}

} // namespace dlrun::coordinator
