#include "actors/common/task_thread.hpp"

#include <atomic>
#include <condition_variable>
#include <gtest/gtest.h>
#include <latch>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::common {
namespace {

TEST(task_thread, runs_tasks_in_their_order_whichever_way_they_were_given) {
  std::vector<int> order;
  std::latch done{1};
  task_thread thread{"test"};
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
  task_thread thread{"test"};
  thread.run_later([&] { was_run = true; });
  EXPECT_FALSE(was_run);
  thread.run_here([&] { EXPECT_TRUE(was_run); });
  EXPECT_TRUE(was_run);
}

TEST(task_thread, an_idle_thread_leaves_the_task_to_the_caller) {
  task_thread thread{"test"};
  std::thread::id ran_on;
  thread.run_here([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(task_thread, a_busy_one_takes_it_over) {
  std::latch begun{1}, go_on{1}, done{1};
  std::thread::id ran_on;
  task_thread thread{"test"};
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
    task_thread thread{"test"};
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
  task_thread thread{"test"};
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

// ---- doorbells

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

/// What a thread heard, in order; an empty text stands for the other end's end.
class heard_texts {
public:
  task_thread::listener listener(std::size_t most = 1000) {
    return [this, most](std::optional<std::span<const std::byte>> packet) {
      const std::scoped_lock lock{mutex_};
      texts_.emplace_back(packet ? std::string{reinterpret_cast<const char*>(packet->data()), packet->size()}
                                 : "");
      changed_.notify_all();
      return texts_.size() < most;
    };
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return texts_.size() >= count; });
    return texts_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

TEST(task_thread, hears_a_doorbell_while_it_has_nothing_to_do) {
  auto [theirs, ours] = transport::doorbell::pair().value();
  heard_texts heard;
  task_thread thread{"test"};
  ASSERT_TRUE(thread.listen(std::move(ours), heard.listener()));
  ASSERT_TRUE(theirs->ring(bytes("one")));
  heard.wait_for(1);
  ASSERT_TRUE(theirs->ring(bytes("two")));
  heard.wait_for(2);
  theirs.reset();
  EXPECT_EQ(heard.wait_for(3), (std::vector<std::string>{"one", "two", ""}));
}

TEST(task_thread, still_runs_tasks_when_it_listens) {
  auto [theirs, ours] = transport::doorbell::pair().value();
  heard_texts heard;
  task_thread thread{"test"};
  ASSERT_TRUE(thread.listen(std::move(ours), heard.listener()));
  for (int round = 0; round < 1000; ++round) {
    std::latch done{1};
    thread.run([&] { done.count_down(); });
    done.wait();
    ASSERT_TRUE(theirs->ring(bytes("packet")));
    heard.wait_for(static_cast<std::size_t>(round) + 1);
  }
}

TEST(task_thread, what_rings_during_a_task_is_heard_before_the_next_one) {
  auto [theirs, ours] = transport::doorbell::pair().value();
  heard_texts heard;
  std::size_t heard_before = 0;
  std::latch done{1};
  task_thread thread{"test"};
  ASSERT_TRUE(thread.listen(std::move(ours), heard.listener()));
  thread.run([&, bell = theirs.get()] {
    thread.run([&] {
      heard_before = heard.wait_for(0).size();
      done.count_down();
    });
    EXPECT_TRUE(bell->ring(bytes("now")));
  });
  done.wait();
  EXPECT_EQ(heard_before, 1U);
}

TEST(task_thread, who_has_heard_enough_is_not_called_again) {
  auto [theirs, ours] = transport::doorbell::pair().value();
  heard_texts heard;
  task_thread thread{"test"};
  ASSERT_TRUE(thread.listen(std::move(ours), heard.listener(1)));
  ASSERT_TRUE(theirs->ring(bytes("first")));
  heard.wait_for(1);
  (void)theirs->ring(bytes("second")); // it may be closed by now
  std::latch done{1};
  thread.run([&] { done.count_down(); });
  done.wait();
  EXPECT_EQ(heard.wait_for(1), std::vector<std::string>{"first"});
}

TEST(task_thread, many_doorbells_are_heard_by_one_thread) {
  constexpr std::size_t bells = 200; // more than it looks at in one turn
  heard_texts heard;
  std::vector<std::unique_ptr<transport::doorbell>> theirs;
  task_thread thread{"test"};
  for (std::size_t i = 0; i < bells; ++i) {
    auto [one, other] = transport::doorbell::pair().value();
    theirs.push_back(std::move(one));
    ASSERT_TRUE(thread.listen(std::move(other), heard.listener(2 * bells)));
  }
  for (const auto& bell : theirs) ASSERT_TRUE(bell->ring(bytes("here")));
  EXPECT_EQ(heard.wait_for(bells).size(), bells);
}

TEST(task_thread, after_its_end_nothing_runs) {
  auto [theirs, ours] = transport::doorbell::pair().value();
  std::atomic<int> calls = 0;
  task_thread thread{"test"};
  ASSERT_TRUE(thread.listen(std::move(ours), [&](auto) { return ++calls > 0; }));
  thread.stop();
  (void)theirs->ring(bytes("anybody there?"));
  thread.run([&] { ++calls; });
  EXPECT_EQ(calls, 0);
}

} // namespace
} // namespace dlrun::common
