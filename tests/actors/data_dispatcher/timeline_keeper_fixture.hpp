/// A keeper of timelines, and what PS shards and workers tell it.
#pragma once

#include "actors/data_dispatcher/timeline_keeper.hpp"
#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {

inline constexpr incarnation me{6};

/// Of a job with two PS shards, two slots, twenty steps; version 8 is evaluated.
class timeline_keeper_test : public testing::Test {
protected:
  static timeline_keeper_config config() {
    timeline_keeper_config made;
    made.self = me;
    made.ps_shards = 2;
    made.steps = 20;
    made.sizes.slots_of = [](step_id) { return 2U; };
    made.sizes.records_of = [](step_id, slot_id) { return 4U; };
    made.sizes.records_min = 2;
    made.evaluations = {.steps = 20, .versions = {{8}}};
    return made;
  }
  timeline_keeper_test() { keeper.set_workers({{{0}, {1}}}, true); }

  /// PS shard `shard` has logged up to `applied`, from a snapshot on.
  protocol::shard_status status(std::uint32_t shard, std::uint64_t applied,
                                std::vector<version_id> snapshots = {},
                                protocol::history history = protocol::first_history()) {
    protocol::shard_status made;
    made.shard = {shard};
    made.self = {{1}, 0};
    made.timeline = newest_timeline(history);
    made.applied = made.committed = {applied};
    made.durable.history = std::move(history);
    const auto first = snapshots.empty() ? version_id{0} : snapshots.front();
    made.durable.restorable = protocol::from({{{0}, {applied}}}, first);
    made.durable.snapshots = std::move(snapshots);
    made.durable.serves_previous = applied > 0;
    return made;
  }
  data_dispatcher_actions hear(const protocol::shard_status& what) {
    data_dispatcher_actions out;
    keeper.on_shard_status(what, now, out);
    return out;
  }
  data_dispatcher_actions hear_both(std::uint64_t first, std::uint64_t second,
                                    std::vector<version_id> snapshots = {},
                                    const protocol::history& history = protocol::first_history()) {
    hear(status(0, first, snapshots, history));
    return hear(status(1, second, snapshots, history));
  }
  data_dispatcher_actions tick(std::chrono::milliseconds time = std::chrono::milliseconds(0)) {
    now += time;
    data_dispatcher_actions out;
    keeper.on_tick(now, out);
    return out;
  }
  data_dispatcher_actions journaled(const data_dispatcher_actions& order) {
    data_dispatcher_actions out;
    for (const auto& one : only<journal_course>(order)) {
      course = one.course;
      keeper.on_journaled(one.id, now, out);
    }
    return out;
  }
  static protocol::evaluated evaluated(std::uint64_t version, std::uint64_t value) {
    protocol::evaluated made;
    made.version = {version};
    made.loss_sum_bits = value;
    return made;
  }
  data_dispatcher_actions go_back(std::uint64_t version, std::uint64_t revision) {
    data_dispatcher_actions out;
    keeper.go_back({{version}, revision, {}}, now, out);
    return out;
  }
  data_dispatcher_actions park(std::uint64_t step, std::uint32_t slot) {
    data_dispatcher_actions out;
    keeper.park({{step}, {slot}}, now, out);
    return out;
  }
  data_dispatcher_actions answer(const std::vector<addressed<protocol::probe>>& probes,
                                 std::vector<protocol::step_slots> kept = {}) {
    data_dispatcher_actions out;
    for (const auto& one : probes)
      if (one.to.kind == protocol::role_kind::worker)
        keeper.on_kept({{one.to.index}, {{1}, 0}, keeper.timeline(), one.message.id, kept}, now, out);
    return out;
  }
  /// Shard 0 lacks step 4, of which nobody keeps a gradient; @returns what the decision brings.
  data_dispatcher_actions lose_a_gradient() {
    const auto probes = sent<protocol::probe>(hear_both(4, 6));
    const auto asked = sent<protocol::probe>(answer(probes));
    auto last = status(0, 4);
    last.probe = asked.at(0).message.id;
    hear(last);
    last = status(1, 6);
    last.probe = asked.at(0).message.id;
    return hear(last);
  }

  const protocol::watched_metric loss{
      [](const protocol::evaluated& one) { return static_cast<double>(one.loss_sum_bits); }, false};
  timeline_keeper keeper{config(), {}};
  journaled_course course;
  protocol::time_point now{std::chrono::hours(1)};
};

} // namespace dlrun::data_dispatcher
