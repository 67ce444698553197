#include "actors/agent/beats/own_time.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

constexpr protocol::time_point start{1h};

TEST(own_time, a_thread_that_wakes_in_time_has_missed_nothing) {
  own_time own{50ms};
  EXPECT_EQ(own.woke(start, start - 20ms), 0ms); // there was something to read
  EXPECT_EQ(own.woke(start, start + 49ms), 0ms);
}

TEST(own_time, a_thread_that_wakes_late_has_missed_that_time) {
  own_time own{50ms};
  EXPECT_EQ(own.woke(start, start + 50ms), 50ms);
  EXPECT_EQ(own.woke(start, start + 1h), 1h);
}

TEST(own_time, a_turn_is_as_old_as_the_time_that_the_process_had_since) {
  own_time own{50ms};
  EXPECT_EQ(own.turn_age(start, start + 30ms), 30ms);
  own.woke(start + 50ms, start + 10s);
  EXPECT_EQ(own.turn_age(start, start + 10s), 50ms);
  EXPECT_EQ(own.turn_age(start, start + 11s), 1050ms);
}

TEST(own_time, the_next_turn_begins_anew) {
  own_time own{50ms};
  own.woke(start, start + 10s);
  EXPECT_EQ(own.turn_age(start + 11s, start + 15s), 4s);
}

} // namespace
} // namespace dlrun::agent
