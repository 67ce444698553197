#include "base/service_loop.hpp"

#include <atomic>
#include <csignal>
#include <future>
#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

using clock = std::chrono::steady_clock;

/// Tells what its loop does with it.
class told_service final : public polled_service {
public:
  explicit told_service(int descriptor = -1)
      : descriptor_(descriptor) {}

  clock::time_point watch(std::vector<pollfd>& fds) override {
    EXPECT_EQ(fds.size(), 1U) << "the loop's own";
    fds.push_back({descriptor_, POLLIN, 0});
    if (++watched_ == 2) woken.set_value();
    return deadline;
  }

  void serve(std::span<const pollfd> fds) override {
    EXPECT_EQ(fds.size(), 1U);
    EXPECT_FALSE(ended);
    if (std::exchange(served_, true)) return;
    served.set_value(fds[0].revents);
  }

  void end() override {
    ended = true;
    thread = std::this_thread::get_id();
  }

  clock::time_point deadline = clock::time_point::max();
  std::promise<short> served;
  std::promise<void> woken;
  std::atomic<bool> ended{false};
  std::thread::id thread;

private:
  const int descriptor_;
  int watched_ = 0;
  bool served_ = false;
};

TEST(service_loop, serves_what_is_ready) {
  const auto event = wake_event::create().value();
  told_service service(event.fd());
  service_loop loop;
  ASSERT_TRUE(loop.start("test", "the test", service));
  event.notify();
  EXPECT_EQ(service.served.get_future().get(), POLLIN);
}

TEST(service_loop, serves_at_the_deadline_with_nothing_ready) {
  told_service service;
  service.deadline = clock::now() + std::chrono::milliseconds(1);
  service_loop loop;
  ASSERT_TRUE(loop.start("test", "the test", service));
  EXPECT_EQ(service.served.get_future().get(), 0);
}

TEST(service_loop, asks_again_what_to_wait_for_when_it_is_woken) {
  told_service service;
  service_loop loop;
  ASSERT_TRUE(loop.start("test", "the test", service));
  loop.wake();
  service.woken.get_future().get();
}

TEST(service_loop, ends_the_service_on_its_own_thread_before_stop_returns) {
  told_service service;
  service_loop loop;
  ASSERT_TRUE(loop.start("test", "the test", service));
  loop.stop();
  EXPECT_TRUE(service.ended);
  EXPECT_NE(service.thread, std::this_thread::get_id());
  loop.stop(); // again is nothing
}

TEST(service_loop, nothing_is_served_after_stop) {
  const auto event = wake_event::create().value();
  event.notify(); // ready all the time: every turn would serve
  told_service service(event.fd());
  service_loop loop;
  ASSERT_TRUE(loop.start("test", "the test", service));
  service.served.get_future().get();
  loop.stop(); // serve() objects when it comes after end()
  EXPECT_TRUE(service.ended);
}

TEST(service_loop, one_that_never_started_stops_without_a_word) {
  told_service service;
  { service_loop loop; }
  EXPECT_FALSE(service.ended);
}

TEST(service_thread, is_deaf_to_signals) {
  sigset_t mask{};
  start_service_thread("test", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); }).join();
  EXPECT_TRUE(sigismember(&mask, SIGTERM));
  EXPECT_TRUE(sigismember(&mask, SIGINT));
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGTERM)) << "the caller's is as before";
}

} // namespace
} // namespace dlrun::base
