#include "actors/ps_shard/ps_shard_core.hpp"

#include "tests/actors/only.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;
using test::only;
using testing::IsEmpty;

constexpr std::uint64_t own = first_own_value;

/// A PS shard of a job with four slots of two records, ten steps, B = 1.
class ps_shard_core_test : public testing::Test {
protected:
  static ps_shard_core_config config(protocol::durability durability) {
    ps_shard_core_config made;
    made.self = {0};
    made.fence = {{5}, 1};
    made.steps = 10;
    made.slots_of = [](step_id) { return 4U; };
    made.records_of = [](step_id, slot_id) { return std::uint64_t{2}; };
    made.durability = durability;
    return made;
  }
  static protocol::push gradient(std::uint64_t step, std::uint32_t begin, std::uint32_t end,
                                 std::uint32_t worker = 0, std::uint64_t start = 1) {
    protocol::push made;
    made.worker = {worker};
    made.self = {{start}, 0};
    made.step = {step};
    made.slots = make_slot_range(begin, end);
    made.records = 2 * std::uint64_t{end - begin};
    return made;
  }
  ps_shard_actions push(std::uint64_t step, std::uint32_t begin, std::uint32_t end, std::uint64_t value) {
    return core.on_push(gradient(step, begin, end), {value});
  }
  /// The record of a step of eight samples after undisturbed ones.
  static append logged(std::uint64_t step, std::uint64_t root) {
    append made{{step}, {root}, {}};
    made.ledger = {.steps_applied = step + 1, .samples_applied = 8 * (step + 1)};
    return made;
  }

  ps_shard_core core{config(protocol::durability::off), {}};
  ps_shard_core logging{config(protocol::durability::every_step), {}};
};

TEST_F(ps_shard_core_test, a_whole_step_is_applied_published_and_released) {
  EXPECT_EQ(push(0, 0, 4, 1), (ps_shard_actions{apply{{0}, {1}}}));
  EXPECT_EQ(core.state().applied, version_id{0});
  EXPECT_EQ(core.on_applied({0}), (ps_shard_actions{release{{1}}, publish{}, send_status{}}))
      << "the worker's first contribution is told at once";
  EXPECT_EQ(core.state().applied, version_id{1});
  EXPECT_EQ(core.state().committed, version_id{1});
  EXPECT_TRUE(core.state().serves_previous);
}

TEST_F(ps_shard_core_test, siblings_are_summed_in_tree_order_whatever_the_order_of_arrival) {
  EXPECT_THAT(push(0, 3, 4, 1), IsEmpty());
  EXPECT_THAT(push(0, 0, 2, 2), IsEmpty());
  EXPECT_EQ(push(0, 2, 3, 3),
            (ps_shard_actions{combine{{own}, {3}, {1}},
                              apply{{0}, {own + 1}, 0, 0, combine{{own + 1}, {2}, {own}}}}));
}

TEST_F(ps_shard_core_test, a_subtree_inside_one_that_is_held_is_dropped) {
  push(0, 0, 2, 1);
  EXPECT_FALSE(core.wants(gradient(0, 1, 2)));
  EXPECT_EQ(push(0, 1, 2, 2), (ps_shard_actions{release{{2}}, send_state{{0}}}));
}

TEST_F(ps_shard_core_test, a_subtree_that_contains_others_replaces_them) {
  push(0, 1, 2, 1);
  EXPECT_EQ(push(0, 0, 4, 2), (ps_shard_actions{release{{1}}, apply{{0}, {2}}}));
  EXPECT_EQ(core.status().ledger.samples_duplicated, 0U);
}

TEST_F(ps_shard_core_test, the_same_subtree_twice_releases_the_newcomer) {
  push(0, 0, 2, 1);
  EXPECT_EQ(push(0, 0, 2, 2), (ps_shard_actions{release{{2}}, send_state{{0}}}));
}

TEST_F(ps_shard_core_test, what_comes_while_its_step_is_applied_is_dropped) {
  push(0, 0, 4, 1);
  EXPECT_EQ(push(0, 0, 1, 2), (ps_shard_actions{release{{2}}, send_state{{0}}}));
  EXPECT_FALSE(core.state().serves_previous);
}

TEST_F(ps_shard_core_test, who_asks_for_more_is_told_what_the_next_step_lacks) {
  const auto ask = [&](std::uint64_t step, std::uint32_t tries, std::uint64_t timeline = 0) {
    return core.on_pull({{timeline}, {3}, {{1}, 0}, {step}, tries});
  };
  const ps_shard_actions nothing{send_state{{3}}};
  push(0, 0, 2, 1);
  push(1, 0, 1, 2);
  EXPECT_EQ(ask(0, 0), nothing) << "it does not ask for that";
  EXPECT_EQ(ask(1, 1), nothing) << "another step is next";
  EXPECT_EQ(ask(0, 1, 7), nothing) << "of another timeline";
  EXPECT_EQ(ask(0, 1), (ps_shard_actions{send_state{{3}, make_slot_range(3, 4)}}));
  EXPECT_EQ(ask(0, 1), (ps_shard_actions{send_state{{3}, make_slot_range(2, 3)}}));
  EXPECT_EQ(ask(0, 1), nothing) << "others compute all of it";
  push(0, 2, 4, 3);
  EXPECT_EQ(ask(0, 2), nothing) << "it lacks nothing";
}

TEST_F(ps_shard_core_test, a_slot_whose_gradient_is_on_its_way_is_offered_to_nobody) {
  const protocol::pull asked{{0}, {3}, {{1}, 0}, {0}, 1};
  const auto offered = [&](std::vector<protocol::slot_range> on_the_way) {
    return core.on_pull(asked, on_the_way);
  };
  push(0, 0, 2, 1);
  EXPECT_EQ(offered({make_slot_range(2, 4)}), ps_shard_actions{send_state{{3}}});
  EXPECT_EQ(offered({make_slot_range(3, 4)}), (ps_shard_actions{send_state{{3}, make_slot_range(2, 3)}}));
  EXPECT_EQ(offered({}), (ps_shard_actions{send_state{{3}, make_slot_range(3, 4)}}));
}

TEST_F(ps_shard_core_test, steps_beyond_the_bound_and_before_the_version_are_refused) {
  EXPECT_TRUE(core.wants(gradient(2, 0, 4)));
  EXPECT_FALSE(core.wants(gradient(3, 0, 4)));
  push(0, 0, 4, 1);
  core.on_applied({0});
  EXPECT_FALSE(core.wants(gradient(0, 0, 4)));
  EXPECT_TRUE(core.wants(gradient(3, 0, 4)));
}

TEST_F(ps_shard_core_test, the_next_step_is_applied_at_once_when_it_is_complete) {
  push(1, 0, 4, 1);
  push(0, 0, 4, 2);
  EXPECT_EQ(core.on_applied({0}),
            (ps_shard_actions{release{{2}}, publish{}, apply{{1}, {1}}, send_status{}}));
}

TEST_F(ps_shard_core_test, hostile_pushes_are_unusable) {
  auto wrong = gradient(0, 0, 4);
  wrong.records = 7;
  EXPECT_FALSE(core.wants(wrong));
  EXPECT_FALSE(core.wants(gradient(0, 1, 3)));
  EXPECT_FALSE(core.wants(gradient(0, 0, 8)));
  EXPECT_FALSE(core.wants(gradient(0, 4, 0)));
  EXPECT_FALSE(core.wants(gradient(0, 0, 0)));
  EXPECT_FALSE(core.wants(gradient(0, UINT32_MAX - 1, UINT32_MAX)));
  EXPECT_FALSE(core.wants(gradient(UINT64_MAX, 0, 4)));
  EXPECT_FALSE(core.wants(gradient(10, 0, 4)));
  auto elsewhere = gradient(0, 0, 4);
  elsewhere.timeline = {1};
  EXPECT_FALSE(core.wants(elsewhere));
  EXPECT_EQ(core.on_push(elsewhere, {1}), (ps_shard_actions{release{{1}}, send_state{{0}}}));
}

TEST_F(ps_shard_core_test, an_older_start_of_a_worker_is_refused_by_name_of_the_newest) {
  core.on_directory({{1}, 1, {{protocol::worker_role({0}), {2}, true, {}}}});
  EXPECT_EQ(push(0, 0, 4, 1), (ps_shard_actions{release{{1}}, send_fenced{{0}, {2}}}));
  protocol::pull old;
  old.self = {{1}, 0};
  EXPECT_EQ(core.on_pull(old), (ps_shard_actions{send_fenced{{0}, {2}}}));
}

TEST_F(ps_shard_core_test, a_newer_start_than_the_directory_knows_is_taken_and_fences_the_older) {
  core.on_push(gradient(0, 0, 2, 0, 7), {1});
  EXPECT_EQ(core.on_push(gradient(0, 2, 4, 0, 6), {2}),
            (ps_shard_actions{release{{2}}, send_fenced{{0}, {7}}}));
}

TEST_F(ps_shard_core_test, ends_when_a_newer_start_of_it_exists) {
  protocol::directory all{{1}, 1, {{protocol::ps_shard_role({0}), {5}, true, {}}}};
  EXPECT_THAT(core.on_directory(all), IsEmpty());
  all.entries[0].incarnation = {6};
  EXPECT_EQ(core.on_directory(all), (ps_shard_actions{exit_fenced{{6}}}));
  EXPECT_EQ(push(0, 0, 4, 1), (ps_shard_actions{release{{1}}}));
}

TEST_F(ps_shard_core_test,
       with_a_log_a_version_is_published_before_it_is_committed_but_not_beyond_the_bound) {
  EXPECT_EQ(logging.on_push(gradient(0, 0, 4), {1}), (ps_shard_actions{apply{{0}, {1}}, logged(0, 1)}));
  EXPECT_EQ(logging.on_applied({0}), (ps_shard_actions{publish{}, send_status{}}));
  EXPECT_EQ(logging.state().committed, version_id{0});
  EXPECT_THAT(logging.on_push(gradient(1, 0, 4), {2}), IsEmpty());
  EXPECT_EQ(logging.on_committed({1}),
            (ps_shard_actions{release{{1}}, publish{}, apply{{1}, {2}}, logged(1, 2)}));
  EXPECT_EQ(logging.state().committed, version_id{1});
}

TEST_F(ps_shard_core_test, a_root_stays_until_it_is_applied_and_in_the_log) {
  logging.on_push(gradient(0, 0, 4), {1});
  EXPECT_THAT(only<release>(logging.on_committed({1})), IsEmpty());
  EXPECT_EQ(logging.state().committed, version_id{0}) << "nothing is committed that is not applied";
  EXPECT_EQ(only<release>(logging.on_applied({0})), std::vector{release{{1}}});
  EXPECT_EQ(logging.state().committed, version_id{1});
}

TEST_F(ps_shard_core_test, a_restored_shard_goes_on_where_it_was) {
  loaded_standing found;
  found.version = {4};
  found.serves_previous = true;
  found.restorable = {{{0}, {4}}};
  ps_shard_core restored(config(protocol::durability::every_step), found);
  EXPECT_EQ(restored.state().applied, version_id{4});
  EXPECT_EQ(restored.state().committed, version_id{4});
  EXPECT_TRUE(restored.state().serves_previous);
  EXPECT_FALSE(restored.wants(gradient(3, 0, 4)));
  restored.on_push(gradient(4, 0, 4), {1});
  EXPECT_EQ(restored.status().ledger.steps_redone, 0U);
}

TEST_F(ps_shard_core_test, the_first_contribution_of_the_newest_start_of_each_worker_is_noted) {
  core.on_push(gradient(0, 0, 2, 3, 1), {1});
  core.on_push(gradient(0, 2, 4, 4, 1), {2});
  core.on_push(gradient(1, 0, 2, 3, 2), {3});
  core.on_push(gradient(2, 0, 2, 3, 2), {4});
  EXPECT_EQ(core.status().contributions,
            (std::vector<protocol::first_contribution>{{{3}, {2}, {1}}, {{4}, {1}, {0}}}));
}

TEST_F(ps_shard_core_test, every_step_is_complete_in_the_ledger_and_nothing_leaks_whatever_arrives) {
  std::mt19937 random(11); // NOLINT: the same every time
  ps_shard_core busy(config(protocol::durability::off), {});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes{{0, 1}, {1, 2}, {2, 3}, {3, 4},
                                                             {0, 2}, {2, 4}, {0, 4}, {1, 3}};
  std::int64_t held = 0;
  std::uint64_t next = 1;
  const std::function<void(const ps_shard_actions&)> perform = [&](const ps_shard_actions& actions) {
    for (const auto& action : actions) {
      if (std::holds_alternative<combine>(action) || std::holds_alternative<release>(action)) --held;
      const auto* one = std::get_if<apply>(&action);
      if (one && one->sum) --held;
      if (one) perform(busy.on_applied(one->step));
    }
  };
  while (busy.state().applied.value < 10) {
    const auto [begin, end] = nodes[random() % nodes.size()];
    ++held;
    perform(busy.on_push(gradient(busy.state().applied.value + random() % 4, begin, end, random() % 3),
                         {next++}));
  }
  EXPECT_EQ(busy.status().ledger, (protocol::applied_ledger{10, 0, 80, 0, 0}));
  EXPECT_EQ(held, 0);
}

// ---- a step that is begun with before all of it is there

TEST_F(ps_shard_core_test, a_step_that_is_begun_early_is_applied_once_when_it_is_complete) {
  EXPECT_THAT(push(0, 0, 2, 1), IsEmpty());
  EXPECT_EQ(core.begin_early({0}), 0U);
  EXPECT_FALSE(core.state().serves_previous) << "its buffer is written to";
  EXPECT_EQ(core.begin_early({0}), 0U) << "more of it can be applied";
  EXPECT_EQ(push(0, 2, 4, 2), (ps_shard_actions{apply{{0}, {own}, 0, 0, combine{{own}, {1}, {2}}}}));
  EXPECT_THAT(core.on_tick(), IsEmpty());
  EXPECT_FALSE(core.begin_early({0})) << "the rest is ordered";
  EXPECT_EQ(core.on_applied({0}), (ps_shard_actions{release{{own}}, publish{}, send_status{}}));
  EXPECT_TRUE(core.state().serves_previous);
}

TEST_F(ps_shard_core_test, a_complete_step_that_has_to_wait_is_summed_meanwhile) {
  push(0, 0, 4, 1);
  push(1, 0, 2, 2);
  EXPECT_EQ(push(1, 2, 4, 3), (ps_shard_actions{combine{{own}, {2}, {3}}}));
  EXPECT_EQ(only<apply>(core.on_applied({0})), (std::vector{apply{{1}, {own}}}));
}

TEST_F(ps_shard_core_test, the_end_is_told_at_once) {
  loaded_standing last;
  last.version = {9};
  ps_shard_core resumed(config(protocol::durability::off), last);
  resumed.on_push(gradient(9, 0, 4), {1});
  EXPECT_EQ(only<send_status>(resumed.on_applied({9})).size(), 1U);
}

TEST_F(ps_shard_core_test, only_the_next_step_is_begun_early_and_not_while_another_is_applied) {
  EXPECT_FALSE(core.begin_early({1}));
  push(0, 0, 4, 1);
  EXPECT_FALSE(core.begin_early({0})) << "it is being applied";
  EXPECT_FALSE(core.begin_early({1}));
  core.on_applied({0});
  EXPECT_FALSE(core.begin_early({0}));
  EXPECT_TRUE(core.begin_early({1}));
}

TEST_F(ps_shard_core_test, no_step_is_begun_early_beyond_the_bound_of_the_log) {
  logging.on_push(gradient(0, 0, 4), {1});
  logging.on_applied({0});
  EXPECT_FALSE(logging.begin_early({1})) << "step 0 is not in the log";
  logging.on_committed({1});
  EXPECT_TRUE(logging.begin_early({1}));
}

TEST_F(ps_shard_core_test, where_norms_couple_no_step_is_begun_early) {
  auto coupled = config(protocol::durability::off);
  coupled.combine_norms = [](const auto&) { return std::uint64_t{0}; };
  EXPECT_FALSE(ps_shard_core(coupled, {}).begin_early({0}));
}

} // namespace
} // namespace dlrun::ps_shard
