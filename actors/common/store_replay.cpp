#include "actors/common/store_replay.hpp"

#include "base/sha256.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace dlrun::common {

state_source floats_of(persistence::snapshot_reader& reader) {
  return [&reader](std::span<float> into) -> result<void> {
    const auto got = reader.read(std::as_writable_bytes(into));
    if (!got) return tl::unexpected(got.error());
    if (*got == into.size_bytes()) return {};
    return fail(error_code::storage_damaged,
                fmt::format("the snapshot of version {} is too short", reader.info().version));
  };
}

result<void> check_read_to_end(persistence::snapshot_reader& reader) {
  std::byte beyond{};
  const auto rest = reader.read({&beyond, 1});
  if (!rest) return tl::unexpected(rest.error());
  if (*rest == 0) return {};
  return fail(error_code::storage_damaged,
              fmt::format("the snapshot of version {} is too long", reader.info().version));
}

engine::step_shape shape_of(const data::sampler& sampler, step_id step, std::uint64_t revision,
                            const std::vector<protocol::parked_slot>& parked, std::uint64_t coupled) {
  engine::step_shape shape{revision, sampler.records_in_step(step), sampler.slots(step),
                           std::bit_cast<double>(coupled)};
  for (slot_id slot{0}; slot.value < sampler.slots(step) && !parked.empty(); ++slot.value) {
    const auto records = sampler.records_in_slot(step, slot);
    const auto left = protocol::records_left(parked, step, slot, records);
    shape.records -= records - left;
    if (left == 0) --shape.slots;
  }
  return shape;
}

std::vector<protocol::parked_slot> parked_on(const protocol::history& history, timeline_id timeline) {
  protocol::history then;
  for (const auto& entry : history)
    if (entry.timeline <= timeline) then.push_back(entry);
  return protocol::parked_slots(then);
}

std::vector<base_version> bases_for(const persistence::shard_store& store, version_id version) {
  std::vector<base_version> all{{version_id{0}, false}};
  for (const auto& snapshot : store.snapshots())
    if (snapshot.version <= version) all.push_back({snapshot.version, true});
  std::ranges::reverse(all);
  std::stable_partition(all.begin(), all.end(), [&](const auto& one) { return one.version < version; });
  std::erase_if(all, [&](const auto& one) {
    for (auto step = step_from(one.version); version_after(step) <= version; ++step.value)
      if (!store.read_head(step)) return true;
    return false;
  });
  return all;
}

std::string block_digest(std::uint32_t number, std::span<const float> parameters,
                         std::span<const float> state) {
  base::sha256 sum;
  sum.add(std::as_bytes(std::span{&number, 1}));
  sum.add(std::as_bytes(parameters));
  sum.add(std::as_bytes(state));
  return sum.finish();
}

} // namespace dlrun::common
