#include "actors/agent/excused_deaths.hpp"
#include "actors/agent/slot_clock.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using protocol::slot_progress;
using std::chrono::milliseconds;

TEST(excused_deaths, are_those_that_lead_to_a_record_and_no_more) {
  excused_deaths deaths(2);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(deaths.excuses({{{1}, {0}}})) << i;
  EXPECT_FALSE(deaths.excuses({{{1}, {0}}})) << "nothing comes of it";
  EXPECT_TRUE(deaths.excuses({{{1}, {1}}})) << "another slot";
}

TEST(excused_deaths, end_when_too_many_records_were_named) {
  excused_deaths deaths(1);
  for (std::uint32_t record = 0; record < protocol::parked_by_death_max; ++record)
    EXPECT_TRUE(deaths.excuses({{{1}, {0}, record}, true}));
  EXPECT_FALSE(deaths.excuses({{{1}, {0}, 1000}, true}));
}

TEST(slot_clock, counts_only_while_it_is_looked_at_and_the_worker_gives_signs) {
  slot_clock clock;
  protocol::time_point now{std::chrono::hours(1)};
  const auto look = [&](std::uint64_t sequence, bool signs, milliseconds later) {
    now += later;
    return clock.look(sequence, signs, now);
  };
  look(2, true, milliseconds(0));
  look(2, true, milliseconds(100));
  EXPECT_EQ(clock.time(), milliseconds(100));
  look(2, false, milliseconds(100));
  EXPECT_EQ(clock.time(), milliseconds(100)) << "it is stopped";
  look(2, true, milliseconds(60'000));
  EXPECT_EQ(clock.time(), milliseconds(600)) << "the host slept";
  EXPECT_EQ(look(4, true, milliseconds(100)), milliseconds(600)) << "it is at something else";
  EXPECT_EQ(clock.time(), milliseconds(0));
}

} // namespace
} // namespace dlrun::agent
