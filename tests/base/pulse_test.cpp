#include "base/pulse.hpp"

#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

using namespace std::chrono_literals;

const loop_pulse::time_point began{1h};

TEST(pulse, lives_while_no_loop_has_begun) {
  const pulse one;
  EXPECT_TRUE(one.is_alive(began + 24h)) << "reading what there is of a run may take its time";
}

TEST(pulse, lives_while_each_loop_turns_within_its_time) {
  pulse one;
  one.main.turn(began);
  one.agent.turn(began + 10s);
  EXPECT_TRUE(one.is_alive(began + 30s));
  EXPECT_FALSE(one.is_alive(began + 31s)) << "the main loop stands still";
  one.main.turn(began + 35s);
  EXPECT_TRUE(one.is_alive(began + 40s));
  EXPECT_FALSE(one.is_alive(began + 41s)) << "the agent stands still";
}

TEST(pulse, gives_a_turn_that_waits_for_others_the_time_that_it_asks_for) {
  pulse one;
  one.main.turn(began, 180s);
  EXPECT_TRUE(one.is_alive(began + 180s));
  EXPECT_FALSE(one.is_alive(began + 181s));
}

TEST(pulse, does_not_count_a_loop_that_is_over) {
  pulse one;
  {
    turning loop{one.main};
    loop.turn();
    EXPECT_FALSE(one.is_alive(std::chrono::steady_clock::now() + 31s));
  }
  EXPECT_TRUE(one.is_alive(std::chrono::steady_clock::now() + 31s));
}

TEST(pulse, counts_a_loop_from_its_first_turn_on) {
  pulse one;
  const turning loop{one.main};
  EXPECT_TRUE(one.is_alive(std::chrono::steady_clock::now() + 31s));
}

TEST(pulse, is_ready_in_its_place_and_while_it_lives) {
  pulse one;
  EXPECT_FALSE(one.is_ready(began));
  one.set_ready(true);
  one.agent.turn(began);
  EXPECT_TRUE(one.is_ready(began + 30s));
  EXPECT_FALSE(one.is_ready(began + 31s));
  one.set_ready(false);
  EXPECT_FALSE(one.is_ready(began));
}

} // namespace
} // namespace dlrun::base
