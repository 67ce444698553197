#include "actors/ps_shard/retained_version.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

result<transport::parameter_reader> read_from(base::unique_fd memory, std::size_t floats, std::size_t first) {
  const auto bytes = transport::parameter_segment_bytes(floats);
  auto segment = transport::segment::adopt(std::move(memory), bytes, bytes);
  if (!segment) return tl::unexpected(segment.error());
  return transport::parameter_reader::open(std::move(*segment), floats, first,
                                           transport::retained_floats_max);
}

} // namespace

retained_version::retained_version(transport::parameter_reader parameters, transport::parameter_reader state,
                                   std::size_t state_floats)
    : parameters_{std::move(parameters)}
    , state_{std::move(state)}
    , state_floats_{state_floats} {}

result<retained_version> retained_version::open(common::retained_memory memory, const retained_shape& shape) {
  auto parameters = read_from(std::move(memory.parameters), shape.range.size, shape.range.offset);
  if (!parameters) return tl::unexpected(parameters.error());
  auto state = read_from(std::move(memory.state),
                         retained_state_floats(shape.state_floats, shape.beside_bytes_max), 0);
  if (!state) return tl::unexpected(state.error());
  retained_version made{std::move(*parameters), std::move(*state), shape.state_floats};
  if (auto found = made.find_newest(shape); !found) return tl::unexpected(found.error());
  return made;
}

result<void> retained_version::find_newest(const retained_shape& shape) {
  const auto whole = parameters_.versions();
  const auto with_state = state_.versions();
  const auto found = std::ranges::find_first_of(whole, with_state);
  if (found == whole.end()) return fail(error_code::storage_damaged, "no version in memory is whole");
  name_ = *found;
  const transport::whole_version previous{name_.timeline, {name_.version.value - 1}};
  has_previous_ = std::ranges::find(whole, previous) != whole.end();
  const auto newest = retained_state_of(state_.view(name_.timeline, name_.version)->values, state_floats_);
  if (!newest) return tl::unexpected(newest.error());
  if (newest->beside.empty())
    return fail(error_code::storage_damaged, "the newest version in memory is one that was loaded");
  auto extra =
      common::decode_retained_extra(newest->beside, shape.range, shape.image_floats, shape.metric_sums);
  if (!extra) return tl::unexpected(extra.error());
  extra_ = std::move(*extra);
  return {};
}

std::span<const float> retained_version::parameters(version_id version) const {
  const auto found = parameters_.view(name_.timeline, version);
  DLRUN_CHECK(found, "version {} is not retained", version);
  return found->values;
}

std::span<const float> retained_version::state() const {
  const auto found = state_.view(name_.timeline, name_.version);
  DLRUN_CHECK(found, "the state of version {} is not retained", name_.version);
  return found->values.first(state_floats_);
}

} // namespace dlrun::ps_shard
