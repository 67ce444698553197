// How a worker leaves (R33).
#include "tests/actors/only.hpp"
#include "tests/actors/worker/worker_core_fixture.hpp"

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct departure_test : worker_core_test {
  void log_every_step() {
    auto durable = config();
    durable.durability = protocol::durability::every_step;
    core = worker_core{durable};
  }
  /// Both shards stand at `applied` and have committed `committed`. @returns the last actions.
  worker_actions hear_all(std::uint64_t applied, std::uint64_t committed) {
    hear(0, applied, committed);
    return hear(1, applied, committed);
  }
};

TEST_F(departure_test, a_worker_that_has_nothing_in_hand_leaves_at_once) {
  EXPECT_THAT(core.on_leave(now), ElementsAre(exit_left{}));
  EXPECT_THAT(core.on_leave(now), IsEmpty());
  EXPECT_THAT(tick_after(milliseconds(500)), IsEmpty());
}

TEST_F(departure_test, whoever_has_begun_nothing_of_the_open_step_begins_nothing) {
  lease(0, 2);
  hear_all(3, 3);
  EXPECT_THAT(core.on_leave(now), ElementsAre(exit_left{}));
}

TEST_F(departure_test, what_it_computes_it_finishes_and_pushes) {
  begin_at(3);
  EXPECT_THAT(core.on_leave(now), IsEmpty());
  EXPECT_TRUE(core.status().leaving);
  EXPECT_THAT(test::only<push_gradient>(computed(3, 0, 2)), SizeIs(2));
}

TEST_F(departure_test, it_begins_no_further_step) {
  begin_at(3);
  core.on_leave(now);
  computed(3, 0, 2);
  const auto news = hear_all(4, 3);
  EXPECT_THAT(test::only<compute_gradient>(news), IsEmpty());
  EXPECT_THAT(test::only<fetch_part>(news), IsEmpty());
}

TEST_F(departure_test, of_a_step_that_it_has_begun_it_finishes_its_share) {
  lease(0, 3); // the nodes [0, 2) and 2
  hear_all(3, 3);
  part(0, 3);
  part(1, 3);
  core.on_leave(now);
  const auto next = test::only<compute_gradient>(computed(3, 0, 2));
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].slots, make_slot_range(2, 3));
}

TEST_F(departure_test, a_lease_that_comes_late_changes_nothing) {
  begin_at(3);
  core.on_leave(now);
  EXPECT_THAT(lease(0, 4, 2), IsEmpty());
  EXPECT_EQ(core.status().lease_sequence, 2U) << "it is acknowledged all the same";
  EXPECT_THAT(test::only<compute_gradient>(computed(3, 0, 2)), IsEmpty());
}

TEST_F(departure_test, it_stays_until_every_shard_has_committed_what_it_keeps) {
  log_every_step();
  begin_at(3);
  core.on_leave(now);
  computed(3, 0, 2);
  EXPECT_THAT(test::only<exit_left>(hear_all(4, 3)), IsEmpty());
  EXPECT_THAT(test::only<push_gradient>(tick_after(milliseconds(100))), IsEmpty()) << "they have applied it";
  EXPECT_THAT(test::only<exit_left>(hear(0, 4, 4)), IsEmpty());
  EXPECT_THAT(test::only<exit_left>(hear(1, 4, 4)), SizeIs(1));
}

TEST_F(departure_test, a_shard_that_starts_anew_meanwhile_gets_what_it_lacks) {
  log_every_step();
  begin_at(3);
  core.on_leave(now);
  computed(3, 0, 2);
  hear_all(4, 3);
  const auto again = core.on_shard_state(state(1, 3, 3, 2), now);
  EXPECT_THAT(test::only<push_gradient>(again), ElementsAre(push_gradient{{1}, {3}, make_slot_range(0, 2)}));
  EXPECT_THAT(test::only<exit_left>(again), IsEmpty());
}

TEST_F(departure_test, another_timeline_makes_void_what_it_stayed_for) {
  begin_at(3);
  core.on_leave(now);
  computed(3, 0, 2);
  EXPECT_THAT(test::only<exit_left>(core.on_shard_state(state(0, 2, 2, 1, 5), now)), SizeIs(1));
}

TEST_F(departure_test, what_comes_of_a_computation_that_nobody_needs_any_more_is_waited_for) {
  begin_at(3);
  core.on_leave(now);
  EXPECT_THAT(test::only<exit_left>(hear_all(5, 5)), IsEmpty());
  const auto done = computed(3, 0, 2);
  EXPECT_THAT(test::only<forget_gradient>(done), SizeIs(1));
  EXPECT_THAT(test::only<exit_left>(done), SizeIs(1));
}

} // namespace
} // namespace dlrun::worker
