#include "actors/worker/host_share.hpp"

#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using namespace std::chrono_literals;

/// Steps of 10 s, of which the layers take 3 s; the first one takes longer.
class share_of_steps : public testing::Test {
protected:
  std::optional<double> begin_step() {
    now += step_.value == 0 ? 100s : 10s;
    taken += step_.value == 0 ? 90s : 3s;
    ++step_.value;
    return share.on_begin(step_, now, taken);
  }

  host_share share;
  step_id step_{0};
  protocol::time_point now{};
  std::chrono::nanoseconds taken{};
};

TEST_F(share_of_steps, is_said_once_after_the_first_step_and_those_that_are_measured) {
  std::vector<std::uint64_t> said_at;
  for (int i = 0; i < 40; ++i)
    if (const auto said = begin_step()) {
      EXPECT_DOUBLE_EQ(*said, 0.3);
      said_at.push_back(step_.value);
    }
  EXPECT_EQ(said_at, std::vector<std::uint64_t>{host_share::steps + 2});
}

TEST_F(share_of_steps, has_each_step_once_however_many_gradients_it_has) {
  std::optional<double> said;
  for (int i = 0; i < 40 && !said; ++i) {
    said = begin_step();
    EXPECT_FALSE(share.on_begin(step_, now + 1s, taken + 1s));
  }
  EXPECT_EQ(said, 0.3);
  EXPECT_EQ(step_.value, host_share::steps + 2);
}

TEST_F(share_of_steps, counts_a_step_again_that_is_done_again) {
  for (std::uint32_t i = 0; i <= host_share::steps; ++i) {
    EXPECT_FALSE(begin_step());
    if (i % 2 == 0) step_.value -= i == 0 ? 0 : 2;
  }
  EXPECT_TRUE(begin_step());
}

TEST(host_share, that_took_no_time_is_not_said) {
  host_share share;
  for (std::uint64_t step = 1; step < 40; ++step) EXPECT_FALSE(share.on_begin({step}, {}, {}));
}

} // namespace
} // namespace dlrun::worker
