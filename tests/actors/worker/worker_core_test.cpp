#include "tests/actors/worker/worker_core_fixture.hpp"

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using protocol::step_slots;
using test::only;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(worker_core_test, asks_every_shard_where_it_stands_and_repeats_it) {
  EXPECT_EQ(core.on_tick(now), (worker_actions{pull(0), pull(1)}));
  EXPECT_THAT(tick_after(milliseconds(10)), IsEmpty());
  hear(0, 0, 0);
  EXPECT_EQ(tick_after(milliseconds(95)), (worker_actions{pull(1)}));
}

TEST_F(worker_core_test, computes_from_exactly_the_version_of_all_shards) {
  lease(0, 2);
  EXPECT_THAT(hear(0, 0, 0), IsEmpty());
  EXPECT_EQ(hear(1, 0, 0), (worker_actions{fetch_part{{0}, {1}, {}, {0}}, fetch_part{{1}, {1}, {}, {0}}}));
  EXPECT_THAT(part(0, 0), IsEmpty());
  EXPECT_EQ(part(1, 0), (worker_actions{compute_gradient{{}, {0}, make_slot_range(0, 2)}}));
}

TEST_F(worker_core_test, works_at_the_lowest_version_and_fetches_the_next_ahead) {
  begin_at(0);
  EXPECT_EQ(hear(0, 1, 1), (worker_actions{fetch_part{{0}, {1}, {}, {1}}}));
  EXPECT_EQ(core.open_step(), step_id{0});
  EXPECT_THAT(part(0, 1), IsEmpty());
}

TEST_F(worker_core_test, pushes_what_it_computed_to_every_shard_once) {
  begin_at(0);
  EXPECT_THAT(only<push_gradient>(computed(0, 0, 2)),
              ElementsAre(push_gradient{{0}, {0}, make_slot_range(0, 2)},
                          push_gradient{{1}, {0}, make_slot_range(0, 2)}));
  EXPECT_THAT(kept(), ElementsAre(step_slots{{0}, make_slot_range(0, 2)}));
  EXPECT_THAT(hear(0, 0, 0), IsEmpty());
  EXPECT_THAT(only<push_gradient>(tick_after(milliseconds(50))), IsEmpty());
  EXPECT_EQ(only<push_gradient>(tick_after(milliseconds(60))).size(), 2U);
}

TEST_F(worker_core_test, keeps_nothing_of_what_was_computed_from_overwritten_parameters) {
  begin_at(0);
  const auto overwritten = core.on_overwritten({}, {0}, make_slot_range(0, 2), now);
  EXPECT_EQ(overwritten, (worker_actions{fetch_part{{0}, {1}, {}, {0}}, fetch_part{{1}, {1}, {}, {0}}}));
  EXPECT_THAT(kept(), IsEmpty());
  part(0, 0);
  EXPECT_EQ(part(1, 0), (worker_actions{compute_gradient{{}, {0}, make_slot_range(0, 2)}}));
  EXPECT_THAT(only<push_gradient>(computed(0, 0, 2)), SizeIs(2));
}

TEST_F(worker_core_test, goes_on_with_the_version_that_took_the_place_of_overwritten_parameters) {
  begin_at(0);
  for (const std::uint32_t shard : {0U, 1U}) hear(shard, 2, 2); // others made two versions meanwhile
  part(0, 1);                                                   // what was fetched ahead
  EXPECT_EQ(core.on_overwritten({}, {0}, make_slot_range(0, 2), now),
            (worker_actions{fetch_part{{0}, {1}, {}, {2}}, fetch_part{{1}, {1}, {}, {2}}}));
  EXPECT_THAT(core.on_overwritten({}, {0}, make_slot_range(0, 2), now), IsEmpty()) << "it has ended";
}

TEST_F(worker_core_test, does_not_push_to_a_shard_that_is_past_the_step) {
  begin_at(0);
  hear(0, 1, 1);
  EXPECT_EQ(only<push_gradient>(computed(0, 0, 2)),
            (std::vector{push_gradient{{1}, {0}, make_slot_range(0, 2)}}));
}

TEST_F(worker_core_test, pushes_again_to_a_shard_that_came_back_lower) {
  begin_at(4);
  computed(4, 0, 2);
  hear(0, 5, 4);
  hear(1, 5, 4);
  EXPECT_EQ(core.open_step(), step_id{5});
  const auto actions = hear(1, 4, 4, 2);
  EXPECT_EQ(only<push_gradient>(actions), (std::vector{push_gradient{{1}, {4}, make_slot_range(0, 2)}}));
  EXPECT_EQ(core.open_step(), step_id{4});
}

TEST_F(worker_core_test, a_state_of_an_older_start_is_ignored) {
  begin_at(4);
  hear(1, 4, 4, 2);
  EXPECT_THAT(hear(1, 6, 6, 1), IsEmpty());
  EXPECT_EQ(core.open_step(), step_id{4});
}

TEST_F(worker_core_test, a_late_state_of_the_same_start_takes_nothing_back) {
  begin_at(4);
  hear(0, 5, 5);
  hear(1, 5, 5);
  hear(0, 4, 4);
  EXPECT_EQ(core.open_step(), step_id{5});
}

TEST_F(worker_core_test, forgets_a_step_when_every_shard_has_committed_it) {
  begin_at(0);
  computed(0, 0, 2);
  EXPECT_THAT(only<forget_gradient>(hear(0, 1, 1)), IsEmpty());
  EXPECT_THAT(only<forget_gradient>(hear(1, 1, 0)), IsEmpty());
  EXPECT_EQ(only<forget_gradient>(hear(1, 1, 1)), (std::vector{forget_gradient{{0}, make_slot_range(0, 2)}}));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(worker_core_test, does_not_keep_what_was_committed_while_it_computed) {
  begin_at(0);
  hear(0, 1, 1);
  hear(1, 1, 1);
  const auto actions = computed(0, 0, 2);
  EXPECT_THAT(only<push_gradient>(actions), IsEmpty());
  EXPECT_EQ(only<forget_gradient>(actions), (std::vector{forget_gradient{{0}, make_slot_range(0, 2)}}));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(worker_core_test, a_new_lease_takes_effect_with_the_next_node_and_only_what_is_missing_is_computed) {
  begin_at(0);
  lease(0, 4, 2);
  EXPECT_EQ(only<compute_gradient>(computed(0, 0, 2)),
            (std::vector{compute_gradient{{}, {0}, make_slot_range(2, 4)}}));
}

TEST_F(worker_core_test, of_a_node_that_is_kept_in_part_the_largest_missing_nodes_are_computed) {
  lease(1, 2);
  hear(0, 0, 0);
  hear(1, 0, 0);
  part(0, 0);
  part(1, 0);
  lease(0, 4, 2);
  EXPECT_EQ(only<compute_gradient>(computed(0, 1, 2)),
            (std::vector{compute_gradient{{}, {0}, make_slot_range(0, 1)}}));
  EXPECT_EQ(only<compute_gradient>(computed(0, 0, 1)),
            (std::vector{compute_gradient{{}, {0}, make_slot_range(2, 4)}}));
}

TEST_F(worker_core_test, a_lease_is_cut_to_the_slots_of_a_partial_step) {
  lease(2, 4);
  hear(0, 9, 9);
  hear(1, 9, 9);
  part(0, 9);
  EXPECT_EQ(only<compute_gradient>(part(1, 9)),
            (std::vector{compute_gradient{{}, {9}, make_slot_range(2, 3)}}));
}

TEST_F(worker_core_test, old_leases_and_those_of_another_start_are_ignored) {
  lease(0, 2, 5);
  lease(2, 4, 4);
  EXPECT_EQ(core.status().lease_sequence, 5U);
  core.on_lease({{1}, 9, {2}, make_slot_range(2, 4)}, now);
  EXPECT_EQ(core.status().lease_sequence, 5U);
  core.on_lease({{2}, 1, me, make_slot_range(2, 4)}, now); // of a newer dispatcher
  EXPECT_EQ(core.status().lease_sequence, 1U);
}

TEST_F(worker_core_test, an_idle_worker_fetches_nothing) {
  lease(3, 3);
  hear(0, 0, 0);
  EXPECT_THAT(only<fetch_part>(hear(1, 0, 0)), IsEmpty());
}

TEST_F(worker_core_test, a_failed_fetch_is_asked_again_when_the_shard_moves_or_by_timer) {
  lease(0, 2);
  hear(0, 0, 0);
  hear(1, 0, 0);
  part(0, 0);
  EXPECT_EQ(part(1, 0, 1, false), (worker_actions{pull(1)}));
  EXPECT_THAT(hear(1, 0, 0), IsEmpty());
  EXPECT_EQ(only<fetch_part>(tick_after(milliseconds(150))), (std::vector{fetch_part{{1}, {1}, {}, {0}}}));
}

TEST_F(worker_core_test, of_a_shard_that_has_moved_on_unheard_neither_version_is_asked_again_and_again) {
  lease(0, 2);
  hear(0, 1, 1);
  hear(1, 2, 2); // serves 1 and 2, as far as one knows
  EXPECT_EQ(only<fetch_part>(part(1, 1, 1, false)), (std::vector{fetch_part{{1}, {1}, {}, {2}}}));
  EXPECT_THAT(only<fetch_part>(part(1, 2, 1, false)), IsEmpty());
  EXPECT_THAT(only<fetch_part>(hear(1, 2, 2)), IsEmpty());
  EXPECT_EQ(only<fetch_part>(hear(1, 3, 3)), (std::vector<fetch_part>{{{1}, {1}, {}, {2}}}))
      << "it has moved";
}

TEST_F(worker_core_test, one_fetch_a_shard_at_a_time_also_over_a_restart_of_it) {
  lease(0, 2);
  hear(0, 0, 0);
  hear(1, 0, 0);
  EXPECT_THAT(only<fetch_part>(hear(1, 0, 0, 2)), IsEmpty());
  EXPECT_EQ(only<fetch_part>(part(1, 0, 1)), (std::vector{fetch_part{{1}, {2}, {}, {0}}}));
}

TEST_F(worker_core_test, nothing_is_fetched_into_the_buffer_that_is_computed_from) {
  begin_at(4);
  EXPECT_THAT(only<fetch_part>(hear(0, 4, 4, 2)), IsEmpty()); // the same version again, of a new start
  EXPECT_EQ(only<fetch_part>(computed(4, 0, 2)).size(), 0U);  // kept: not needed any more
  hear(0, 5, 4, 2);
  hear(1, 5, 4);
  part(0, 5, 2);
  part(1, 5);
  EXPECT_FALSE(only<fetch_part>(hear(1, 6, 5)).empty()); // the other buffer
}

TEST_F(worker_core_test, a_newer_timeline_voids_everything_and_an_older_one_nothing) {
  begin_at(4);
  computed(4, 0, 2);
  const auto actions = core.on_shard_state(state(0, 2, 2, 1, 7), now);
  EXPECT_EQ(only<discard_all>(actions), std::vector{discard_all{{7}}});
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_EQ(core.timeline(), timeline_id{7});
  EXPECT_THAT(hear(1, 4, 4), IsEmpty());
  EXPECT_EQ(core.open_step(), std::nullopt);
}

TEST_F(worker_core_test, what_was_computed_on_an_older_timeline_is_not_kept) {
  begin_at(4);
  core.on_shard_state(state(0, 4, 4, 1, 7), now);
  core.on_shard_state(state(1, 4, 4, 1, 7), now);
  const auto actions = computed(4, 0, 2);
  EXPECT_THAT(only<push_gradient>(actions), IsEmpty());
  EXPECT_EQ(only<forget_gradient>(actions), (std::vector{forget_gradient{{4}, make_slot_range(0, 2)}}));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(worker_core_test, at_most_B_plus_two_steps_are_kept_and_the_highest_go_first) {
  begin_at(0);
  for (std::uint64_t step = 0; step < 4; ++step) { // applied everywhere, committed nowhere
    computed(step, 0, 2);
    hear(0, step + 1, 0);
    hear(1, step + 1, 0);
    part(0, step + 1);
    part(1, step + 1);
  }
  EXPECT_THAT(kept(),
              ElementsAre(step_slots{{0}, make_slot_range(0, 2)}, step_slots{{1}, make_slot_range(0, 2)},
                          step_slots{{2}, make_slot_range(0, 2)}));
}

TEST_F(worker_core_test, stops_and_stays_when_every_shard_stands_at_the_last_version) {
  begin_at(9);
  computed(9, 0, 2);
  hear(0, 10, 10);
  EXPECT_FALSE(core.trained());
  const auto actions = hear(1, 10, 10);
  EXPECT_TRUE(core.trained());
  EXPECT_THAT(only<compute_gradient>(actions), IsEmpty());
  EXPECT_EQ(only<fetch_part>(actions), (std::vector{fetch_part{{1}, {1}, {}, {10}}})) << "for its evaluation";
  EXPECT_THAT(part(0, 10), IsEmpty());
  EXPECT_THAT(part(1, 10), IsEmpty());
  EXPECT_THAT(tick_after(milliseconds(500)), IsEmpty());
}

TEST_F(worker_core_test, ends_when_a_newer_start_of_it_exists_and_says_nothing_more) {
  protocol::directory all{{1}, 1, {{protocol::worker_role({1}), me, true, {}}}};
  EXPECT_THAT(core.on_directory(all, now), IsEmpty());
  EXPECT_THAT(core.on_fenced({protocol::worker_role({0}), {9}}, now), IsEmpty());
  all.entries[0].incarnation = {4};
  EXPECT_EQ(core.on_directory(all, now), (worker_actions{exit_fenced{{4}}}));
  EXPECT_THAT(core.on_fenced({protocol::worker_role({1}), {5}}, now), IsEmpty());
  EXPECT_THAT(hear(0, 0, 0), IsEmpty());
  EXPECT_THAT(core.on_tick(now), IsEmpty());
}

TEST_F(worker_core_test, connects_to_each_shard_that_has_joined_and_asks_it_at_once) {
  const auto entry = [](std::uint32_t shard, std::uint64_t start, bool joined) {
    return protocol::directory_entry{protocol::ps_shard_role({shard}), {start}, joined, {}};
  };
  EXPECT_EQ(core.on_directory({{1}, 2, {entry(0, 1, true), entry(1, 1, false)}}, now),
            (worker_actions{connect_shard{entry(0, 1, true)}}));
  EXPECT_EQ(core.on_connected({0}, {1}, now), (worker_actions{pull(0)}));
  EXPECT_THAT(core.on_directory({{1}, 1, {entry(1, 1, true)}}, now), IsEmpty()) << "it is older";
  EXPECT_EQ(core.on_directory({{1}, 3, {entry(0, 1, true), entry(1, 1, true)}}, now),
            (worker_actions{connect_shard{entry(1, 1, true)}}));
  EXPECT_THAT(core.on_unconnected({1}, {1}, now), IsEmpty());
  EXPECT_EQ(only<connect_shard>(tick_after(milliseconds(100))),
            (std::vector{connect_shard{entry(1, 1, true)}}));
}

TEST_F(worker_core_test, a_copy_of_the_other_version_is_followed_by_one_more_at_once) {
  const fetch_part order{{0}, {1}, {}, {0}};
  lease(0, 2);
  hear(0, 0, 0);
  hear(1, 0, 0);
  EXPECT_EQ(core.on_part(order, fetch_outcome::elsewhere, now), (worker_actions{order}));
  EXPECT_EQ(core.on_part(order, fetch_outcome::elsewhere, now), (worker_actions{pull(0)}))
      << "neither buffer holds it";
  EXPECT_EQ(only<fetch_part>(tick_after(milliseconds(100))), (std::vector{order}));
  EXPECT_EQ(core.on_part(order, fetch_outcome::elsewhere, now), (worker_actions{order}));
}

TEST_F(worker_core_test, hostile_states_and_answers_to_nothing_are_ignored) {
  EXPECT_THAT(hear(2, 0, 0), IsEmpty());
  EXPECT_THAT(hear(UINT32_MAX, 0, 0), IsEmpty());
  EXPECT_THAT(part(0, 3), IsEmpty());
  EXPECT_THAT(computed(0, 0, 2), IsEmpty());
  EXPECT_THAT(lease(9, 3), IsEmpty());
  begin_at(0);
}

TEST_F(worker_core_test, a_gradient_that_waits_longer_than_others_is_checked_once) {
  begin_at(4);
  computed(4, 0, 2);
  EXPECT_THAT(only<check_gradient>(tick_after(milliseconds(90))), IsEmpty()) << "most are applied by then";
  EXPECT_EQ(only<check_gradient>(tick_after(milliseconds(20))),
            (std::vector{check_gradient{{{}, {4}, make_slot_range(0, 2)}}}));
  EXPECT_THAT(only<check_gradient>(tick_after(milliseconds(200))), IsEmpty());
}

TEST_F(worker_core_test, a_gradient_that_is_applied_everywhere_is_not_checked) {
  begin_at(4);
  computed(4, 0, 2);
  hear(0, 5, 4);
  hear(1, 5, 4);
  ASSERT_EQ(kept().size(), 1U) << "it is not committed";
  EXPECT_THAT(only<check_gradient>(tick_after(milliseconds(200))), IsEmpty());
}

} // namespace
} // namespace dlrun::worker
