#include "base/listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <vector>

namespace dlrun::base {
namespace {

using clock = std::chrono::steady_clock;

/// A socket that listens on a free port, and connections to it that wait.
struct waiting_connections {
  explicit waiting_connections(int count) {
    socklen_t length = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listening.get(), at, length), 0);
    EXPECT_EQ(::listen(listening.get(), 16), 0);
    EXPECT_EQ(::getsockname(listening.get(), at, &length), 0);
    for (int i = 0; i < count; ++i) {
      peers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(peers.back().get(), at, length), 0);
    }
  }

  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  unique_fd listening{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  std::vector<unique_fd> peers;
};

TEST(listener, hands_over_what_waits_until_there_is_no_room) {
  waiting_connections waiting(3);
  listener one(std::move(waiting.listening));
  std::vector<unique_fd> taken;
  const auto take = [&](unique_fd connection) {
    taken.push_back(std::move(connection));
    return taken.size() != 2;
  };
  one.accept_waiting(clock::now(), take);
  EXPECT_EQ(taken.size(), 2U);
  one.accept_waiting(clock::now(), take);
  EXPECT_EQ(taken.size(), 3U);
  one.accept_waiting(clock::now(), take);
  EXPECT_EQ(taken.size(), 3U) << "none waits";
}

TEST(listener, waits_for_nothing_without_room) {
  waiting_connections waiting(0);
  const listener one(std::move(waiting.listening));
  std::vector<pollfd> fds;
  EXPECT_EQ(one.watch(fds, true, clock::now()), clock::time_point::max());
  EXPECT_EQ(one.watch(fds, false, clock::now()), clock::time_point::max());
  ASSERT_EQ(fds.size(), 2U);
  EXPECT_GE(fds[0].fd, 0);
  EXPECT_EQ(fds[1].fd, -1);
}

/// poll() would spin while a connection waits for which there is no descriptor.
TEST(listener, pauses_while_descriptors_have_run_out) {
  waiting_connections waiting(1);
  listener one(std::move(waiting.listening));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  const auto now = clock::now();
  bool is_taken = false;
  const auto take = [&](const unique_fd&) { return is_taken = true; };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  one.accept_waiting(now, take);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(is_taken);
  std::vector<pollfd> fds;
  EXPECT_EQ(one.watch(fds, true, now), now + accept_pause);
  EXPECT_EQ(fds.back().fd, -1);
  EXPECT_EQ(one.watch(fds, true, now + accept_pause), clock::time_point::max());
  EXPECT_GE(fds.back().fd, 0);
  one.accept_waiting(now + accept_pause, take);
  EXPECT_TRUE(is_taken);
}

} // namespace
} // namespace dlrun::base
