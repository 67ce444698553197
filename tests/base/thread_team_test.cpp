#include "base/thread_team.hpp"

#include "tests/base/no_threads.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <set>

namespace dlrun::base {
namespace {

TEST(thread_team, calls_the_body_once_for_each_number) {
  for (const unsigned threads : {1U, 2U, 5U}) {
    thread_team team(threads);
    for (const std::size_t count : {0U, 1U, 2U, 3U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      team.for_each(count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& number : calls) ASSERT_EQ(number, 1) << threads << " threads, " << count << " numbers";
    }
  }
}

TEST(thread_team, makes_do_with_the_threads_that_there_are) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_without_threads = [] {
    test::take_threads_away();
    thread_team team(4);
    std::atomic<int> calls = 0;
    team.for_each(100, [&](std::size_t) { ++calls; });
    std::_Exit(calls == 100 ? 0 : 1);
  };
  EXPECT_EXIT(run_without_threads(), testing::ExitedWithCode(0), "");
}

TEST(thread_team, returns_when_all_calls_have) {
  thread_team team(3);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> done = 0;
    team.for_each(4, [&](std::size_t) { ++done; });
    ASSERT_EQ(done, 4);
  }
}

TEST(thread_team, all_threads_take_part) {
  thread_team team(3);
  std::latch all_here(3); // nobody gets on before the others have come
  std::mutex mutex;
  std::set<std::thread::id> seen;
  team.for_each(3, [&](std::size_t) {
    all_here.arrive_and_wait();
    const std::scoped_lock lock{mutex};
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3U);
}

TEST(fair_threads, are_at_least_one_and_not_more_than_asked_for) {
  EXPECT_EQ(fair_threads(1'000'000, 4), 1U);
  EXPECT_EQ(fair_threads(1, 1), 1U);
  EXPECT_GE(fair_threads(0, 4), 1U);
  EXPECT_LE(fair_threads(1, 4), 4U);
}

} // namespace
} // namespace dlrun::base
