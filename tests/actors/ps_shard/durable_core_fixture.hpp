/// ps_shard_core where state is durable.
#pragma once

#include "actors/ps_shard/ps_shard_core.hpp"
#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::make_slot_range;
using test::only;

/// A PS shard of a job with two of them, two slots of three records, ten steps, B = 1.
class durable_core : public testing::Test {
protected:
  static ps_shard_core_config config(durability mode = durability::every_step) {
    ps_shard_core_config made;
    made.self = {0};
    made.fence = {{5}, 1};
    made.ps_shards = 2;
    made.steps = 10;
    made.slots_of = [](step_id) { return 2U; };
    made.records_of = [](step_id, slot_id) { return std::uint64_t{3}; };
    made.durability = mode;
    return made;
  }
  static loaded_standing restored(std::uint64_t version, std::vector<version_id> snapshots = {}) {
    loaded_standing made;
    made.version = {version};
    made.serves_previous = version > 0;
    made.restorable = {{{0}, {version}}};
    made.snapshots = std::move(snapshots);
    return made;
  }
  static protocol::push gradient(std::uint64_t step, std::uint32_t begin, std::uint32_t end) {
    protocol::push made;
    made.self = {{1}, 0};
    made.step = {step};
    made.slots = make_slot_range(begin, end);
    made.records = 3 * std::uint64_t{end - begin};
    return made;
  }
  ps_shard_actions push(ps_shard_core& to, std::uint64_t step) {
    return to.on_push(gradient(step, 0, 2), {next_value++});
  }
  /// The whole way of one step, with its record in the log.
  ps_shard_actions train(ps_shard_core& shard, std::uint64_t step) {
    push(shard, step);
    shard.on_committed({step + 1});
    return shard.on_applied({step});
  }
  static protocol::rewind going_back(std::uint64_t version, std::vector<protocol::parked_slot> parked = {}) {
    return {{1}, {version}, extended(protocol::first_history(), {{1}, {version}, 0, std::move(parked)})};
  }

  std::uint64_t next_value = 1;
  ps_shard_core core{config(), {}};
};

} // namespace dlrun::ps_shard
