#include "base/ready_set.hpp"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <set>
#include <sys/socket.h>

namespace dlrun::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct pair_of_sockets {
  pair_of_sockets() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
  void say() const { EXPECT_EQ(::send(there.get(), "x", 1, MSG_NOSIGNAL), 1); }

  unique_fd here, there;
  ready_set::watched place{.owner = this};
};

struct ready_set_test : testing::Test {
  bool is_ready() {
    pollfd one{set.fd(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  void watch(pair_of_sockets& of, short events) {
    EXPECT_TRUE(set.watch(of.here.get(), events, of.place).has_value());
  }

  ready_set set = ready_set::create().value();
  pair_of_sockets one, other;
};

TEST_F(ready_set_test, what_is_ready_is_told_with_its_owner_until_it_is_served) {
  watch(one, POLLIN);
  watch(other, POLLIN);
  EXPECT_FALSE(is_ready());
  EXPECT_THAT(set.take(), IsEmpty());
  one.say();
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_TRUE(is_ready());
    EXPECT_THAT(set.take(), ElementsAre(&one.place));
    EXPECT_EQ(one.place.owner, &one);
    EXPECT_EQ(one.place.ready, POLLIN);
  }
}

TEST_F(ready_set_test, what_is_waited_for_can_change) {
  watch(one, POLLIN);
  EXPECT_THAT(set.take(), IsEmpty());
  watch(one, POLLIN | POLLOUT);
  EXPECT_THAT(set.take(), ElementsAre(&one.place));
  EXPECT_EQ(one.place.ready, POLLOUT);
  watch(one, POLLIN);
  EXPECT_THAT(set.take(), IsEmpty());
}

TEST_F(ready_set_test, of_what_is_not_waited_for_not_even_the_end_is_told) {
  watch(one, POLLIN);
  one.there.reset();
  EXPECT_THAT(set.take(), ElementsAre(&one.place));
  EXPECT_NE(one.place.ready & POLLHUP, 0);
  watch(one, 0);
  EXPECT_FALSE(is_ready());
  watch(one, POLLIN);
  EXPECT_TRUE(is_ready());
}

TEST_F(ready_set_test, more_than_a_turn_has_come_in_the_next_ones) {
  std::deque<pair_of_sockets> many(400);
  for (auto& each : many) {
    watch(each, POLLIN);
    each.say();
  }
  std::set<const void*> served;
  while (is_ready())
    for (const auto* place : set.take()) {
      auto& of = *static_cast<pair_of_sockets*>(place->owner);
      served.insert(&of);
      watch(of, 0);
    }
  EXPECT_EQ(served.size(), many.size());
}

TEST_F(ready_set_test, what_cannot_be_watched_is_an_error) {
  ready_set::watched place;
  EXPECT_EQ(set.watch(-1, POLLIN, place).error().code, error_code::system);
  EXPECT_EQ(place.events, 0);
}

} // namespace
} // namespace dlrun::base
