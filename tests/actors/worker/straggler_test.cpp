#include "tests/actors/worker/worker_core_fixture.hpp"

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using protocol::slot_range;
using test::only;
using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

/// What it asks for more than where a PS shard stands.
std::vector<send_pull> asked(const worker_actions& actions) {
  auto all = only<send_pull>(actions);
  std::erase_if(all, [](const auto& one) { return one.message.tries == 0; });
  return all;
}

/// A worker that has computed its slots, 0 and 1, of step 5, while others have not.
struct straggler_test : worker_core_test {
  straggler_test() {
    begin_at(5);
    ended = computed(5, 0, 2);
  }
  worker_actions wake_after(protocol::duration time) {
    now += time;
    return core.on_tick(now);
  }
  static send_pull asks(std::uint32_t shard, std::uint32_t tries, std::uint64_t step = 5) {
    return {{shard}, {{}, config().self, config().fence, {step}, tries}};
  }
  worker_actions lacks(std::uint32_t shard, std::uint64_t applied, slot_range slots) {
    auto said = state(shard, applied, applied);
    said.lacks = slots;
    return core.on_shard_state(said, now);
  }

  worker_actions ended;
};

TEST_F(straggler_test, who_is_done_waits_for_the_others_before_it_asks) {
  ASSERT_THAT(only<wake>(ended), SizeIs(1));
  EXPECT_THAT(asked(ended), IsEmpty());
  const auto early = wake_after(milliseconds(10));
  EXPECT_THAT(asked(early), IsEmpty());
  EXPECT_THAT(only<wake>(early), IsEmpty()) << "it is to be woken already";
  EXPECT_THAT(asked(wake_after(only<wake>(ended)[0].after - milliseconds(10))), SizeIs(1));
}

TEST_F(straggler_test, when_a_step_is_late_it_asks_and_computes_what_is_lacking) {
  EXPECT_THAT(wake_after(milliseconds(1300)), Contains(worker_action{asks(0, 1)}));
  const auto orders = only<compute_gradient>(lacks(0, 5, make_slot_range(3, 4)));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].step, step_id{5});
  EXPECT_EQ(orders[0].slots, make_slot_range(3, 4));
  const auto done = computed(5, 3, 4);
  EXPECT_THAT(only<push_gradient>(done), SizeIs(2)) << "to both PS shards";
  EXPECT_THAT(done, Contains(worker_action{asks(0, 1)})) << "and what else is lacking";
}

TEST_F(straggler_test, the_others_are_asked_when_the_first_says_nothing) {
  wake_after(milliseconds(1300));
  EXPECT_THAT(wake_after(milliseconds(3000)), Contains(worker_action{asks(1, 2)}));
}

TEST_F(straggler_test, only_who_holds_the_step_up_is_asked) {
  hear(0, 6, 6);
  EXPECT_THAT(wake_after(milliseconds(3000)), Contains(worker_action{asks(1, 1)}));
}

TEST_F(straggler_test, what_was_lacking_of_another_step_is_not_computed) {
  wake_after(milliseconds(1300));
  EXPECT_THAT(only<compute_gradient>(lacks(0, 4, make_slot_range(3, 4))), IsEmpty());
  hear(0, 6, 6);
  lacks(1, 6, make_slot_range(3, 4));
  part(0, 6);
  const auto orders = only<compute_gradient>(part(1, 6));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].slots, make_slot_range(0, 2)) << "its own come first";
}

TEST_F(straggler_test, what_it_has_computed_is_not_computed_again) {
  wake_after(milliseconds(1300));
  EXPECT_THAT(only<compute_gradient>(lacks(0, 5, make_slot_range(1, 2))), IsEmpty());
}

TEST_F(straggler_test, what_is_lacking_may_be_several_slots) {
  wake_after(milliseconds(1300));
  const auto orders = only<compute_gradient>(lacks(0, 5, make_slot_range(2, 4)));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].slots, make_slot_range(2, 4));
  EXPECT_THAT(asked(computed(5, 2, 4)), SizeIs(1));
}

TEST_F(straggler_test, a_computation_for_the_step_before_asks_for_nothing_of_the_next) {
  wake_after(milliseconds(1300));
  lacks(0, 5, make_slot_range(3, 4));
  hear(0, 6, 6);
  hear(1, 6, 6);
  EXPECT_THAT(only<send_pull>(computed(5, 3, 4)), IsEmpty());
}

/// R34: one gradient is kept for each node.
TEST(straggler_help, who_has_computed_as_many_nodes_as_a_share_may_have_asks_no_more) {
  work_share share([](step_id) { return 64U; });
  share.take({{1}, 1, {3}, make_slot_range(0, 32)});
  shard_standings shards(1, {});
  protocol::shard_state state;
  state.incarnation = {1};
  shards.hear(state);
  straggler_help help;
  protocol::time_point now{std::chrono::hours(1)};
  help.open({0}, now);
  worker_actions first;
  help.look_for_more({{}, {1}, {}, {0}}, share, shards, now, first);
  std::uint32_t times = 0;
  for (; times < 64; ++times) {
    worker_actions out;
    now += std::chrono::hours(1);
    help.look_for_more({{}, {1}, {}, {0}}, share, shards, now, out);
    if (only<send_pull>(out).empty()) break;
    state.lacks = make_slot_range(63 - times, 64 - times);
    help.hear(state);
    help.on_computed({0}, state.lacks, {});
  }
  EXPECT_EQ(times, share.nodes_max({0}));
}

TEST_F(straggler_test, who_leaves_asks_for_nothing) {
  core.on_leave(now);
  EXPECT_THAT(asked(wake_after(milliseconds(5000))), IsEmpty());
}

TEST_F(worker_core_test, who_has_no_lease_asks_for_nothing) {
  hear(0, 5, 5);
  EXPECT_THAT(only<wake>(hear(1, 5, 5)), IsEmpty());
  now += milliseconds(5000);
  EXPECT_THAT(asked(core.on_tick(now)), IsEmpty());
}

TEST_F(worker_core_test, who_has_no_slots_helps_too) {
  lease(0, 0);
  hear(0, 5, 5);
  EXPECT_THAT(only<wake>(hear(1, 5, 5)), SizeIs(1));
  now += milliseconds(1300);
  EXPECT_THAT(asked(core.on_tick(now)), SizeIs(1));
  auto said = state(0, 5, 5);
  said.lacks = make_slot_range(3, 4);
  EXPECT_THAT(only<fetch_part>(core.on_shard_state(said, now)), SizeIs(2))
      << "it has nothing of that version yet";
  part(0, 5);
  EXPECT_THAT(only<compute_gradient>(part(1, 5)), SizeIs(1));
}

} // namespace
} // namespace dlrun::worker
