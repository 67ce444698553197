/// A worker's core that has heard what a test wants it to: for its tests.
#pragma once

#include "actors/worker/worker_core.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {

/// A worker of a job with two PS shards, four slots, ten steps, B = 1.
struct worker_core_test : testing::Test {
  using milliseconds = std::chrono::milliseconds;
  static constexpr incarnation me{3};

  worker_core_test()
      : core(config()) {}

  static worker_core_config config() {
    worker_core_config made;
    made.self = {1};
    made.fence = {me, 77};
    made.ps_shards = 2;
    made.steps = 10;
    made.slots_of = [](step_id step) { return step.value == 9 ? 3U : 4U; };
    return made;
  }
  static protocol::shard_state state(std::uint32_t shard, std::uint64_t applied, std::uint64_t committed,
                                     std::uint64_t start = 1, std::uint64_t timeline = 0) {
    protocol::shard_state made;
    made.shard = {shard};
    made.incarnation = {start};
    made.timeline = {timeline};
    made.applied = {applied};
    made.committed = {committed};
    made.serves_previous = applied > 0;
    return made;
  }
  static send_pull pull(std::uint32_t shard) { return {{shard}, {{}, config().self, config().fence}}; }
  worker_actions hear(std::uint32_t shard, std::uint64_t applied, std::uint64_t committed,
                      std::uint64_t start = 1) {
    return core.on_shard_state(state(shard, applied, committed, start), now);
  }
  worker_actions lease(std::uint32_t begin, std::uint32_t end, std::uint64_t sequence = 1) {
    return core.on_lease({{1}, sequence, me, protocol::make_slot_range(begin, end)}, now);
  }
  worker_actions part(std::uint32_t shard, std::uint64_t version, std::uint64_t start = 1, bool ok = true) {
    return core.on_part({{shard}, {start}, {}, {version}}, ok ? fetch_outcome::taken : fetch_outcome::gone,
                        now);
  }
  worker_actions computed(std::uint64_t step, std::uint32_t begin, std::uint32_t end) {
    return core.on_computed({}, {step}, protocol::make_slot_range(begin, end), now);
  }
  worker_actions tick_after(milliseconds time) {
    now += time;
    return core.on_tick(now);
  }
  /// Both shards at `version`, nothing committed beyond it; lease [0, 2); its parts are there.
  void begin_at(std::uint64_t version) {
    lease(0, 2);
    hear(0, version, version);
    hear(1, version, version);
    part(0, version);
    part(1, version);
  }
  /// As a probe is answered.
  std::vector<protocol::step_slots> kept() {
    return test::only<send_kept>(core.on_probe({42}, now)).at(0).message.slots;
  }

  worker_core core;
  protocol::time_point now{std::chrono::hours(1)};
};

} // namespace dlrun::worker
