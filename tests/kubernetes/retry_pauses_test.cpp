#include "kubernetes/retry_pauses.hpp"

#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using namespace std::chrono_literals;

TEST(retry_pauses, may_be_twice_as_long_each_time_up_to_ten_seconds) {
  retry_pauses pauses;
  constexpr double nearly_all = 0.9999;
  auto before = pauses.next(nearly_all, std::nullopt);
  EXPECT_LE(before, 100ms);
  EXPECT_GE(before, 99ms);
  for (int i = 0; i < 20; ++i) {
    const auto next = pauses.next(nearly_all, std::nullopt);
    EXPECT_LE(next, std::min<std::chrono::milliseconds>(2 * before + 2ms, 10s));
    EXPECT_GE(next, before);
    before = next;
  }
  EXPECT_GE(before, 9990ms);
}

TEST(retry_pauses, are_anything_below_that) {
  retry_pauses pauses;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pauses.next(0, std::nullopt), 0ms);
  EXPECT_EQ(pauses.next(0.25, std::nullopt), 2500ms);
}

TEST(retry_pauses, are_at_least_what_the_server_asks_for) {
  retry_pauses pauses;
  EXPECT_EQ(pauses.next(0, 7s), 7s);
  EXPECT_EQ(pauses.next(0.5, 7s), 7100ms);
}

} // namespace
} // namespace dlrun::kubernetes
