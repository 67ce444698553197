#include "actors/ps_shard/heard_doorbell.hpp"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace dlrun::ps_shard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

protocol::push_packet pushed_of(std::uint64_t step) {
  protocol::push_packet packet;
  packet.step = {step};
  return packet;
}

/// A doorbell that writes down what is heard of it.
class heard_doorbell_test : public testing::Test {
protected:
  template <class Packet>
  bool say(const Packet& packet) {
    return bell.on_packet(protocol::bytes_of(packet));
  }
  bool greet() { return say(*protocol::make_hello({2}, {{5}, 50}, "worker-2")); }

  std::vector<std::string> heard;
  bool is_known = true;
  protocol::push last{};
  heard_doorbell bell{
      {.greeted =
           [this](worker_id worker, const protocol::fence& start) {
             heard.push_back(fmt::format("worker {} start {}", worker, start.incarnation));
             return is_known;
           },
       .pushed =
           [this](const protocol::push& push) {
             heard.push_back(fmt::format("push of step {}", push.step));
             last = push;
           },
       .begun =
           [this](const protocol::push& push, std::uint64_t from) {
             heard.push_back(fmt::format("step {} from {}", push.step, from));
           },
       .ended = [this](worker_id worker) { heard.push_back(fmt::format("worker {} is gone", worker)); }}};
};

TEST_F(heard_doorbell_test, tells_who_it_is_and_then_what_that_start_of_the_worker_pushes) {
  EXPECT_TRUE(greet());
  EXPECT_TRUE(say(protocol::part_packet{.of = pushed_of(7), .from = 100}));
  EXPECT_TRUE(say(pushed_of(7)));
  EXPECT_THAT(heard, ElementsAre("worker 2 start 5", "step 7 from 100", "push of step 7"));
  EXPECT_EQ(last.worker, worker_id{2});
  EXPECT_EQ(last.self, (protocol::fence{{5}, 50}));
  EXPECT_EQ(last.where.address, "worker-2");
}

TEST_F(heard_doorbell_test, hears_nothing_of_one_that_does_not_say_first_who_it_is) {
  EXPECT_FALSE(say(pushed_of(7)));
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(heard_doorbell_test, hears_nothing_more_of_a_start_that_may_not_use_it) {
  is_known = false;
  EXPECT_FALSE(greet());
}

TEST_F(heard_doorbell_test, ends_with_what_is_no_packet_of_a_worker) {
  EXPECT_TRUE(greet());
  EXPECT_FALSE(greet()) << "a second greeting";
  EXPECT_THAT(heard, ElementsAre("worker 2 start 5", "worker 2 is gone"));
}

TEST_F(heard_doorbell_test, ends_with_bytes_of_any_length) {
  for (const std::size_t size : {0, 1, 63, 64, 65, 4096}) {
    const std::vector<std::byte> garbage(size, std::byte{0x64});
    heard_doorbell one = bell;
    EXPECT_FALSE(one.on_packet(garbage)) << size;
  }
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(heard_doorbell_test, tells_that_a_worker_is_gone_only_of_one_that_was_there) {
  EXPECT_FALSE(bell.on_packet(std::nullopt));
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_TRUE(greet());
  EXPECT_FALSE(bell.on_packet(std::nullopt));
  EXPECT_EQ(heard.back(), "worker 2 is gone");
}

} // namespace
} // namespace dlrun::ps_shard
