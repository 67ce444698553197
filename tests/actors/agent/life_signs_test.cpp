#include "actors/agent/life_signs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class life_signs_test : public testing::Test {
protected:
  /// Ticks each second, for so long.
  std::vector<protocol::role_name> tick_for(std::chrono::seconds time) {
    std::vector<protocol::role_name> hung;
    for (const auto end = now + time; now < end;) {
      now += 1s;
      for (const auto& one : signs.tick(now)) hung.push_back(one);
    }
    return hung;
  }

  static constexpr protocol::role_name worker{protocol::role_kind::worker, 0};
  static constexpr protocol::role_name shard{protocol::role_kind::ps_shard, 0};
  life_signs signs{{}};
  protocol::time_point now{1h};
};

TEST_F(life_signs_test, whoever_is_silent_for_ten_seconds_hangs_and_is_named_once) {
  signs.begin(worker, now);
  signs.hear(worker, now);
  EXPECT_THAT(tick_for(9s), IsEmpty());
  EXPECT_FALSE(signs.is_hung(worker));
  EXPECT_THAT(tick_for(5s), ElementsAre(worker));
  EXPECT_TRUE(signs.is_hung(worker));
  EXPECT_TRUE(signs.is_silent(worker, now));
  EXPECT_EQ(signs.silence(worker, now), 14s);
}

TEST_F(life_signs_test, before_its_first_sign_a_role_may_take_a_minute) {
  signs.begin(worker, now);
  EXPECT_THAT(tick_for(59s), IsEmpty());
  EXPECT_FALSE(signs.has_settled(worker));
  EXPECT_THAT(tick_for(1s), ElementsAre(worker));
}

TEST_F(life_signs_test, one_that_is_over_is_not_silent_and_the_next_start_begins_anew) {
  signs.begin(worker, now);
  signs.hear(worker, now);
  signs.end(worker);
  EXPECT_THAT(tick_for(20s), IsEmpty());
  EXPECT_TRUE(signs.has_settled(worker)) << "of the one that is over";
  signs.begin(worker, now);
  EXPECT_FALSE(signs.has_settled(worker));
  EXPECT_EQ(signs.silence(worker, now), 0s);
}

TEST_F(life_signs_test, silence_during_a_pause_of_its_own_proves_nothing) {
  signs.begin(worker, now);
  signs.begin(shard, now);
  signs.hear(worker, now);
  tick_for(1s);
  now += 30s;
  EXPECT_THAT(signs.tick(now), IsEmpty());
  EXPECT_THAT(tick_for(9s), IsEmpty());
  EXPECT_THAT(tick_for(1s), ElementsAre(worker));
}

TEST_F(life_signs_test, a_worker_that_is_at_one_slot_for_too_long_hangs_though_it_is_heard) {
  signs = life_signs{{.slot_timeout = 5s}};
  signs.begin(worker, now);
  std::optional<protocol::duration> time;
  for (int i = 0; i < 100 && !time; ++i, now += 100ms) {
    signs.hear(worker, now);
    time = signs.look({worker, {{1}, 0}, 3, protocol::slot_progress{{{7}, {2}}}}, now);
  }
  EXPECT_EQ(time, 5s);
  EXPECT_TRUE(signs.is_hung(worker));
  EXPECT_FALSE(signs.is_silent(worker, now));
  EXPECT_FALSE(signs.look({worker, {{1}, 0}, 3, protocol::slot_progress{{{7}, {2}}}}, now)) << "once";
}

} // namespace
} // namespace dlrun::agent
