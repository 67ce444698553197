#include "actors/common/task_thread.hpp"

#include <gtest/gtest.h>
#include <latch>
#include <vector>

namespace dlrun::common {
namespace {

TEST(task_thread, runs_tasks_in_their_order_whichever_way_they_were_given) {
  std::vector<int> order;
  std::latch done{1};
  task_thread thread;
  thread.run_later([&] { order.push_back(1); });
  thread.run([&] { order.push_back(2); });
  thread.run_later([&] { order.push_back(3); });
  thread.run([&] {
    order.push_back(4);
    done.count_down();
  });
  done.wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST(task_thread, what_has_time_waits_for_what_has_not) {
  bool was_run = false;
  task_thread thread;
  thread.run_later([&] { was_run = true; });
  EXPECT_FALSE(was_run);
  thread.run_here([&] { EXPECT_TRUE(was_run); });
  EXPECT_TRUE(was_run);
}

TEST(task_thread, an_idle_thread_leaves_the_task_to_the_caller) {
  task_thread thread;
  std::thread::id ran_on;
  thread.run_here([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(task_thread, a_busy_one_takes_it_over) {
  std::latch begun{1}, go_on{1}, done{1};
  std::thread::id ran_on;
  task_thread thread;
  thread.run([&] {
    begun.count_down();
    go_on.wait();
  });
  begun.wait();
  thread.run_here([&] {
    ran_on = std::this_thread::get_id();
    done.count_down();
  });
  go_on.count_down();
  done.wait();
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(task_thread, tasks_never_overlap_and_none_is_lost) {
  int running = 0, count = 0; // guarded by that alone
  std::latch done{1};
  const auto task = [&] {
    EXPECT_EQ(++running, 1);
    ++count;
    --running;
  };
  {
    task_thread thread;
    for (int round = 0; round < 20'000; ++round) {
      if (round % 3 == 0) thread.run(task);
      if (round % 3 == 1) thread.run_here(task);
      if (round % 3 == 2) thread.run_later(task);
    }
    thread.run([&] { done.count_down(); });
    done.wait();
  }
  EXPECT_EQ(count, 20'000);
}

TEST(task_thread, what_a_task_here_asks_for_comes_after_it) {
  std::vector<int> order;
  std::latch done{1};
  task_thread thread;
  thread.run_here([&] {
    thread.run([&] {
      order.push_back(2);
      done.count_down();
    });
    thread.run_later([&] { order.push_back(3); });
    order.push_back(1);
  });
  done.wait();
  thread.run_here([&] { order.push_back(4); });
  std::latch all{1};
  thread.run([&] { all.count_down(); });
  all.wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

} // namespace
} // namespace dlrun::common
