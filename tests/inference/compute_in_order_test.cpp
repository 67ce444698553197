#include "inference/compute_in_order.hpp"

#include "tests/base/no_threads.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>

namespace dlrun::inference {
namespace {

/// What is taken when each of `count` computes ten times itself.
std::vector<std::uint64_t> taken_from(std::uint64_t count, std::size_t threads) {
  std::vector<std::uint64_t> taken;
  const auto done = compute_in_order<std::uint64_t>(
      count, threads, [](std::size_t, std::uint64_t n) { return result<std::uint64_t>{10 * n}; },
      [&](std::uint64_t n, std::uint64_t&& value) -> result<void> {
        EXPECT_EQ(value, 10 * n);
        taken.push_back(n);
        return {};
      });
  EXPECT_TRUE(done);
  return taken;
}

TEST(compute_in_order, takes_every_result_once_in_order) {
  for (const std::size_t threads : {1U, 2U, 7U})
    for (const std::uint64_t count : {0U, 1U, 3U, 1000U}) {
      const auto taken = taken_from(count, threads);
      ASSERT_EQ(taken.size(), count);
      EXPECT_TRUE(std::ranges::is_sorted(taken));
    }
}

TEST(compute_in_order, makes_do_with_the_threads_that_there_are) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_without_threads = [] {
    test::take_threads_away();
    std::_Exit(taken_from(1000, 7).size() == 1000 ? 0 : 1);
  };
  EXPECT_EXIT(run_without_threads(), testing::ExitedWithCode(0), "");
}

TEST(compute_in_order, each_thread_works_on_one_at_a_time) {
  std::vector<std::atomic<int>> busy(3);
  const auto done = compute_in_order<int>(
      300, busy.size(),
      [&](std::size_t thread, std::uint64_t) -> result<int> {
        EXPECT_EQ(busy.at(thread).fetch_add(1), 0);
        busy.at(thread).fetch_sub(1);
        return 0;
      },
      [](std::uint64_t, int&&) -> result<void> { return {}; });
  EXPECT_TRUE(done);
}

TEST(compute_in_order, results_that_wait_are_bounded) {
  std::atomic<std::uint64_t> begun = 0;
  const auto done = compute_in_order<int>(
      100, 2,
      [&](std::size_t, std::uint64_t) -> result<int> {
        ++begun;
        return 0;
      },
      [&](std::uint64_t n, int&&) -> result<void> {
        EXPECT_LE(begun.load(), n + 8);
        return {};
      });
  EXPECT_TRUE(done);
}

TEST(compute_in_order, the_first_error_in_order_ends_it) {
  std::uint64_t last = 0;
  const auto done = compute_in_order<int>(
      1000, 3,
      [](std::size_t, std::uint64_t n) -> result<int> {
        if (n >= 20) return fail(error_code::bad_data, "at " + std::to_string(n));
        return 0;
      },
      [&](std::uint64_t n, int&&) -> result<void> {
        last = n;
        return {};
      });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "at 20");
  EXPECT_EQ(last, 19U);
}

TEST(compute_in_order, what_cannot_be_taken_ends_it) {
  const auto done = compute_in_order<int>(
      1000, 3, [](std::size_t, std::uint64_t) -> result<int> { return 0; },
      [](std::uint64_t n, int&&) -> result<void> {
        if (n == 5) return fail(error_code::system, "full");
        return {};
      });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "full");
}

} // namespace
} // namespace dlrun::inference
