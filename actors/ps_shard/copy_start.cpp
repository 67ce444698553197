#include "actors/ps_shard/copy_start.hpp"

#include <algorithm>

namespace dlrun::ps_shard {

std::vector<std::size_t> copy_start::hear(const protocol::keeper_places& places) {
  std::vector<std::size_t> counted;
  if (!places.is_known || std::exchange(has_heard_, true)) return counted;
  for (std::size_t copy = 0; copy < places.all.size(); ++copy)
    if (places.all[copy].counts) counted.push_back(copy);
  return counted;
}

/// R24, R26: a copy that has heard of a floor lacks what is below it.
std::optional<loaded_standing> copy_start::settle(const copy_chain& chain, const own_store& mine) {
  if (!begins_with_ || !has_heard_) return std::nullopt;
  auto settled = *begins_with_;
  for (std::size_t copy = 0; copy < chain.size(); ++copy) {
    const auto& book = chain.of(copy);
    if (book.counted().value == 0) continue;
    if (!book.holds_all(mine)) return std::nullopt;
    const auto& said = *book.newest_standing();
    const auto below = [&](version_id one) { return one < said.floor; };
    settled.restorable = protocol::from(settled.restorable, said.floor);
    std::erase_if(settled.snapshots, [&](version_id one) {
      return below(one) && !std::ranges::binary_search(said.snapshots, one);
    });
    for (const auto one : settled.snapshots)
      if (below(one)) protocol::insert(settled.restorable, {one, one});
  }
  begins_with_.reset();
  return settled;
}

} // namespace dlrun::ps_shard
