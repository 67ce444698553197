#include "tests/simulation/retained.hpp"

namespace dlrun::simulation {

const retained_image::buffer* retained_image::newest() const {
  const buffer* found = nullptr;
  for (const auto& one : buffers)
    if (one && (found == nullptr || found->version < one->version)) found = &*one;
  return found != nullptr && found->has_notes ? found : nullptr;
}

void retained_writer::restart(timeline_id timeline) {
  image_ = {timeline, {}};
  notes_.reset();
  partials_.clear();
}

void retained_writer::load(version_id version, const shard_image& image) {
  image_.of(version) = retained_image::buffer{version, image, false, {}};
}

void retained_writer::take_over(const retained_image& former) {
  image_ = former;
  partials_ = former.newest()->partials;
}

void retained_writer::publish(version_id version, value content, std::size_t steps_max) {
  const auto notes = std::exchange(notes_, std::nullopt);
  if (!notes || version_after(notes->step) != version) return;
  if (!notes->partials.empty()) partials_[notes->step] = notes->partials;
  while (partials_.size() > steps_max) partials_.erase(partials_.begin());
  image_.of(version) = retained_image::buffer{version, {content, notes->ledger}, true, partials_};
}

const retained_image* retained_memories::find(ps_shard_id shard, std::uint32_t host) const {
  const auto found = kept_.find({shard, host});
  return found == kept_.end() ? nullptr : &found->second;
}

void retained_memories::put(ps_shard_id shard, std::uint32_t host, const retained_image& left) {
  const auto* mine = left.newest();
  if (mine == nullptr) return;
  const auto* known = find(shard, host);
  if (known != nullptr &&
      std::pair(known->timeline, known->newest()->version) >= std::pair(left.timeline, mine->version))
    return;
  kept_[{shard, host}] = left;
}

void retained_memories::lose(std::uint32_t host) {
  std::erase_if(kept_, [&](const auto& one) { return one.first.second == host; });
}

} // namespace dlrun::simulation
