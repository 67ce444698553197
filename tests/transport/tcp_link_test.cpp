// When a fetch is late, with made-up time: the server says what a test tells it.
#include "tests/transport/tcp_peers.hpp"
#include "transport/tcp_link.hpp"

#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>
#include <queue>
#include <semaphore>

namespace dlrun::transport::tcp {
namespace {

using namespace std::chrono_literals;
using time_point = link::time_point;

constexpr auto patience = 2s;
constexpr std::size_t much = std::size_t{256} << 10;
constexpr std::size_t getting_on = std::size_t{64} << 10;

class tcp_link_test : public ::testing::Test {
protected:
  ~tcp_link_test() override { go_ahead_.release(100); }

  static time_point at(std::chrono::milliseconds time) { return time_point{} + 1h + time; }

  void want(std::uint64_t id, time_point now) {
    wanted one;
    one.address = server_.address();
    one.id = {id};
    one.bytes = segment_header_bytes + much;
    one.part = {{}, {segment_header_bytes, much}};
    one.deadline = now + patience;
    one.patience = patience;
    link_.want(std::move(one));
  }

  /// The server sends so many bytes more of the first answer; none: it hangs up.
  void let_send(std::size_t bytes) {
    {
      const std::scoped_lock lock{mutex_};
      to_send_.push(bytes);
    }
    go_ahead_.release();
  }

  /// Takes what comes at `now`, until `done()` is true. @returns whether it ever was.
  template <class Condition>
  bool take(time_point now, Condition done) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < give_up) {
      is_broken_ = !link_.go_on(memory_, over_, now);
      if (done()) return true;
      if (is_broken_) return false;
      pollfd ready{link_.socket(), link_.wants(), 0};
      ::poll(&ready, 1, 100);
    }
    return false;
  }
  bool take_until_due(time_point now, time_point due) {
    return take(now, [&] { return link_.deadline() == due; });
  }

private:
  std::size_t next_to_send() {
    const std::scoped_lock lock{mutex_};
    if (to_send_.empty()) return 0;
    const auto next = to_send_.front();
    to_send_.pop();
    return next;
  }

  void serve(testing::plain_socket& with) {
    request asked;
    if (!testing::greet_as_server(with, token_) || !with.receive(asked)) return;
    reply here;
    here.segment = asked.segment;
    ASSERT_TRUE(with.send(here));
    const std::vector<std::byte> values(much, std::byte{1});
    for (std::size_t sent = 0; sent < much;) {
      go_ahead_.acquire();
      const auto some = std::min(next_to_send(), much - sent);
      if (some == 0) with = testing::plain_socket(base::unique_fd());
      if (some == 0 || !with.send(values.data() + sent, some)) return;
      sent += some;
    }
    trailer end;
    end.unchanged = 1;
    static_cast<void>(with.send(end));
  }

  run_token token_ = run_token::random().value();
  std::counting_semaphore<> go_ahead_{0};
  std::mutex mutex_;
  std::queue<std::size_t> to_send_;
  testing::scripted_server server_{[this](testing::plain_socket& with, int) { serve(with); }};
  copy_buffers memory_;

protected:
  bool is_broken_ = false;
  std::vector<finished> over_;
  link link_{server_.address(), token_, run_token::random().value().bytes, nullptr};
};

TEST_F(tcp_link_test, what_keeps_coming_is_not_late_however_long_it_takes) {
  want(1, at(0ms));
  EXPECT_EQ(link_.deadline(), at(2000ms));
  let_send(getting_on);
  ASSERT_TRUE(take_until_due(at(1500ms), at(3500ms)));
  let_send(getting_on);
  ASSERT_TRUE(take_until_due(at(3000ms), at(5000ms)));
  let_send(much);
  ASSERT_TRUE(take(at(4900ms), [&] { return !over_.empty(); }));
  EXPECT_TRUE(over_.front().outcome);
}

TEST_F(tcp_link_test, who_sends_a_few_bytes_now_and_then_is_late_all_the_same) {
  want(1, at(0ms));
  let_send(getting_on - 100);
  let_send(0);
  ASSERT_TRUE(take(at(1500ms), [&] { return is_broken_; })) << "all that was sent has come then";
  EXPECT_EQ(link_.deadline(), at(2000ms));
}

TEST_F(tcp_link_test, what_waits_behind_an_answer_that_comes_waits_for_it) {
  want(1, at(0ms));
  want(2, at(100ms));
  let_send(getting_on);
  ASSERT_TRUE(take_until_due(at(1500ms), at(3500ms)));
  for (const auto& left : link_.take_all()) EXPECT_EQ(left.deadline, at(3500ms));
}

} // namespace
} // namespace dlrun::transport::tcp
