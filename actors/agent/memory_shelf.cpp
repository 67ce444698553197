#include "actors/agent/memory_shelf.hpp"

#include <utility>

namespace dlrun::agent {
namespace {

constexpr int times_given_max = 3;

} // namespace

memory_shelf::memory memory_shelf::take(std::uint32_t shard) {
  const auto found = kept_.find(shard);
  if (found == kept_.end() || found->second.times_given == times_given_max) return nullptr;
  ++found->second.times_given;
  return found->second.of;
}

memory_shelf::memory memory_shelf::put(std::uint32_t shard, memory left, bool out_of_memory) {
  const auto newest = left->newest();
  auto& kept = kept_[shard];
  if (out_of_memory) {
    std::exchange(kept, {}).of.swap(left);
    return left;
  }
  if (!newest || (kept.of && *newest <= kept.newest)) return left;
  // The same version again: the start that is over has only taken it over.
  kept.times_given = *newest == kept.newest ? kept.times_given : 0;
  kept.newest = *newest;
  kept.of.swap(left);
  return left;
}

bool memory_shelf::holds(std::uint32_t shard) const {
  const auto found = kept_.find(shard);
  return found != kept_.end() && found->second.of != nullptr;
}

memory_shelf::memory memory_shelf::drop(std::uint32_t shard) {
  const auto found = kept_.find(shard);
  return found == kept_.end() ? nullptr : std::exchange(found->second.of, nullptr);
}

} // namespace dlrun::agent
