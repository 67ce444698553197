/// Versions made again from a PS shard's store: what to begin with, and how a step was made.
#pragma once

#include "actors/common/store_extras.hpp"
#include "actors/protocol/timeline.hpp"
#include "data/sampler.hpp"
#include "persistence/shard_store.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dlrun::common {

/// Of `step` on a timeline with these parked slots (sorted). `coupled` as in step_extra.
engine::step_shape shape_of(const data::sampler& sampler, step_id step, std::uint64_t revision,
                            const std::vector<protocol::parked_slot>& parked, std::uint64_t coupled = 0);
/// What was parked when a step of `timeline` was made: it is made again as it was made, whatever
/// was parked later (R11).
std::vector<protocol::parked_slot> parked_on(const protocol::history& history, timeline_id timeline);

/// A version to start from, and whether it is a snapshot (else the initial parameters).
struct base_version {
  version_id version;
  bool is_snapshot = false;
};
/// Those from which the store's log leads to `version`, the best first: the newest below it, so
/// that the version before is made too, and the version itself last.
std::vector<base_version> bases_for(const persistence::shard_store& store, version_id version);

/// Fills the floats of one part of a state, in the order in which a snapshot has them.
using state_source = std::function<result<void>(std::span<float>)>;
/// The numbers of a snapshot. Must not outlive `reader`. @returns storage_damaged when it is too
/// short.
state_source floats_of(persistence::snapshot_reader& reader);
/// Reading to the end verifies the total. @returns storage_damaged.
result<void> check_read_to_end(persistence::snapshot_reader& reader);

/// SHA-256 of a block, 32 bytes: its number in the model, its parameters, its state (decision
/// 0007).
std::string block_digest(std::uint32_t number, std::span<const float> parameters,
                         std::span<const float> state);

} // namespace dlrun::common
