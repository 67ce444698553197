#include "actors/agent/stall_board.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::stall_phase;

protocol::stall computing() {
  return {.version = {120},
          .role = protocol::worker_role({2}),
          .incarnation = {3},
          .phase = stall_phase::computing,
          .has_slot = true,
          .slot = {5},
          .after_us = 1200000};
}

TEST(stall_board, the_event_names_role_host_slot_and_phase) {
  stall_board board;
  const auto event = board.hear(computing(), "beta", protocol::time_point{1h}).value();
  EXPECT_EQ(event.event, "stalled");
  EXPECT_EQ(event.text,
            "no step for 1.2 s after step 120: it waits for worker 2 on beta, which computes slot 5");
  EXPECT_EQ(event.role, protocol::worker_role({2}));
  EXPECT_EQ(event.incarnation, incarnation{3});
  EXPECT_EQ(event.place.host, "beta");
  EXPECT_EQ(event.place.reason, "computing");
  EXPECT_EQ(event.numbers.step, 120U);
  EXPECT_EQ(event.numbers.after_us, 1200000U);
  EXPECT_EQ(event.numbers.values, (std::vector{protocol::named_number("slot", 5)}));
}

TEST(stall_board, it_lasts_from_the_step_before_until_it_is_over) {
  stall_board board;
  const protocol::time_point now{1h};
  EXPECT_FALSE(board.view(120, now));
  board.hear(computing(), "", now);
  ASSERT_TRUE(board.view(120, now + 2s));
  EXPECT_EQ(board.view(120, now + 2s)->lasts, 3200ms);
  auto over = computing();
  over.is_over = true;
  over.after_us = 3400000;
  const auto event = board.hear(over, "", now + 2200ms).value();
  EXPECT_EQ(event.event, "stall-over");
  EXPECT_EQ(event.text,
            "there was no step for 3.4 s after step 120: it waited for worker 2, which computes slot 5");
  EXPECT_FALSE(board.view(120, now + 3s));
}

TEST(stall_board, a_step_ends_it_also_when_nobody_says_so) {
  stall_board board;
  board.hear(computing(), "", protocol::time_point{1h});
  EXPECT_FALSE(board.view(121, protocol::time_point{1h}));
}

TEST(stall_board, its_end_is_told_by_a_step_when_who_told_of_it_died) {
  stall_board board;
  const protocol::time_point now{1h};
  board.hear(computing(), "beta", now);
  EXPECT_FALSE(board.look(120, now + 2s)) << "no step was made";
  const auto event = board.look(121, now + 2s);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event, "stall-over");
  EXPECT_EQ(event->text, "there was no step for 3.2 s after step 120: it waited for worker 2 on beta, which "
                         "computes slot 5");
  EXPECT_EQ(event->place, (protocol::event_place{"beta", "computing"}));
  EXPECT_EQ(event->numbers.after_us, 3200000U);
  EXPECT_FALSE(board.look(122, now + 3s)) << "it is told once";
}

TEST(stall_board, its_end_is_told_once_whoever_notices_it_first) {
  stall_board board;
  const protocol::time_point now{1h};
  auto over = computing();
  over.is_over = true;
  board.hear(computing(), "", now);
  ASSERT_TRUE(board.look(121, now));
  EXPECT_FALSE(board.hear(over, "", now));
  board.hear(computing(), "", now); // everybody went back, and it is the same version again
  EXPECT_TRUE(board.hear(over, "", now));
  EXPECT_FALSE(board.look(121, now));
}

TEST(stall_board, every_phase_has_words) {
  auto what = computing();
  what.ps_shard = {1};
  const auto words = [&](stall_phase phase) {
    what.phase = phase;
    return describe(what, "");
  };
  EXPECT_EQ(words(stall_phase::gone), "worker 2, which is not there");
  EXPECT_EQ(words(stall_phase::silent), "worker 2, which is not heard");
  EXPECT_EQ(words(stall_phase::connecting), "worker 2, which has not heard where ps_shard 1 stands");
  EXPECT_EQ(words(stall_phase::fetching), "worker 2, which lacks parameters of ps_shard 1");
  EXPECT_EQ(words(stall_phase::pushing), "worker 2, whose gradient of slot 5 is not with ps_shard 1");
  EXPECT_EQ(words(stall_phase::evaluating), "worker 2, which evaluates that version");
  EXPECT_EQ(words(stall_phase::logging), "worker 2, whose disk, or its copy, is behind");
  EXPECT_EQ(words(stall_phase::updating), "worker 2, which has all gradients and updates its parameters");
}

} // namespace
} // namespace dlrun::agent
