#include "actors/data_dispatcher/straggler_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using std::chrono::milliseconds;

/// A step counts as slow when it takes four times as long as usual, and 100 ms.
class straggler_watch_test : public testing::Test {
protected:
  bool on_version(std::uint64_t version, milliseconds after, bool is_usual = true) {
    now += after;
    return watch.on_version({version}, is_usual, now);
  }
  bool is_slow(milliseconds after) { return !watch.why_help(now + after).empty(); }

  straggler_watch watch{{.factor = 4, .open_min = milliseconds(100)}};
  protocol::time_point now{std::chrono::hours(1)};
};

TEST_F(straggler_watch_test, a_step_is_slow_beyond_four_times_the_mean_and_the_least) {
  EXPECT_FALSE(is_slow(std::chrono::hours(1))) << "nothing is trained yet";
  on_version(0, milliseconds(0));
  on_version(2, milliseconds(100));
  EXPECT_FALSE(is_slow(milliseconds(199)));
  EXPECT_TRUE(is_slow(milliseconds(200)));
  on_version(3, milliseconds(1));
  on_version(30, milliseconds(27));
  on_version(60, milliseconds(30));
  on_version(90, milliseconds(30));
  on_version(120, milliseconds(30));
  on_version(150, milliseconds(30));
  EXPECT_FALSE(is_slow(milliseconds(99))) << "four times a few milliseconds are soon over";
  EXPECT_TRUE(is_slow(milliseconds(100)));
}

TEST_F(straggler_watch_test, the_first_step_may_take_forty_times_the_least) {
  on_version(0, milliseconds(0));
  EXPECT_FALSE(is_slow(milliseconds(3999)));
  EXPECT_TRUE(is_slow(milliseconds(4000)));
}

TEST_F(straggler_watch_test, says_which_step_and_how_long_it_is_open) {
  on_version(0, milliseconds(0));
  on_version(7, milliseconds(350));
  EXPECT_EQ(watch.why_help(now + milliseconds(300)),
            "step 7 is open for 300 ms, usual are 50 ms: everybody computes all of it");
}

TEST_F(straggler_watch_test, what_all_computed_and_what_was_trained_again_is_not_usual) {
  on_version(0, milliseconds(0));
  on_version(1, milliseconds(50));
  on_version(2, milliseconds(5000), false);
  on_version(0, milliseconds(5000)); // gone back
  EXPECT_TRUE(is_slow(milliseconds(200))) << "50 ms are usual";
}

TEST_F(straggler_watch_test, only_another_version_is_news) {
  EXPECT_TRUE(on_version(0, milliseconds(0)));
  EXPECT_FALSE(on_version(0, milliseconds(10)));
  EXPECT_TRUE(on_version(1, milliseconds(10)));
}

TEST_F(straggler_watch_test, what_is_excused_counts_from_then) {
  on_version(0, milliseconds(0));
  on_version(1, milliseconds(50));
  now += milliseconds(500);
  watch.excuse(now);
  EXPECT_FALSE(is_slow(milliseconds(199)));
  EXPECT_TRUE(is_slow(milliseconds(200)));
}

} // namespace
} // namespace dlrun::data_dispatcher
