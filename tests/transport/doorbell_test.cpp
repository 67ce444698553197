// Doorbells: what rings, what is lost, and how they are connected.
#include "transport/doorbell.hpp"

#include "tests/transport/rogue_peer.hpp"
#include "transport/segment_client.hpp"
#include "transport/segment_server.hpp"

#include <array>
#include <future>
#include <gtest/gtest.h>
#include <string_view>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using outcome = doorbell::outcome;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

/// Takes what is there, as text; nothing when there is nothing or the other end has gone.
std::optional<std::string> take(const doorbell& bell, std::size_t room = doorbell_packet_bytes_max) {
  std::vector<std::byte> into(room);
  const auto taken = bell.take(into);
  if (taken.what != outcome::packet) return std::nullopt;
  return std::string{reinterpret_cast<const char*>(taken.packet.data()), taken.packet.size()};
}

outcome look(const doorbell& bell) {
  std::array<std::byte, doorbell_packet_bytes_max> into;
  return bell.take(into).what;
}

TEST(doorbell, packets_come_whole_and_in_their_order) {
  const auto [left, right] = doorbell::pair().value();
  ASSERT_TRUE(left->ring(bytes("one")));
  ASSERT_TRUE(left->ring(bytes("three")));
  ASSERT_TRUE(right->ring(bytes("back")));
  EXPECT_EQ(take(*right), "one");
  EXPECT_EQ(take(*right), "three");
  EXPECT_EQ(look(*right), outcome::nothing);
  EXPECT_EQ(take(*left), "back");
}

TEST(doorbell, the_end_of_one_side_is_seen_on_the_other_after_what_it_said) {
  auto [left, right] = doorbell::pair().value();
  ASSERT_TRUE(left->ring(bytes("last words")));
  left.reset();
  EXPECT_EQ(take(*right), "last words");
  EXPECT_EQ(look(*right), outcome::closed);
  EXPECT_FALSE(right->ring(bytes("hello?")));
}

TEST(doorbell, a_packet_that_no_correct_peer_sends_closes_it) {
  const auto [left, right] = doorbell::pair().value();
  ASSERT_TRUE(left->ring(bytes("much too long")));
  std::array<std::byte, 4> room;
  EXPECT_EQ(right->take(room).what, outcome::closed);
}

TEST(doorbell, who_rings_never_waits_for_who_does_not_listen) {
  const auto [left, right] = doorbell::pair().value();
  std::size_t sent = 0;
  constexpr std::size_t far_too_many = 1'000'000;
  while (sent < far_too_many && left->ring(bytes("packet"))) ++sent;
  ASSERT_LT(sent, far_too_many) << "a queue without a bound";
  for (std::size_t i = 0; i < sent; ++i) ASSERT_EQ(take(*right), "packet");
  EXPECT_EQ(look(*right), outcome::nothing) << "what could not be sent is not sent later";
  EXPECT_TRUE(left->ring(bytes("again")));
}

class doorbell_exchange : public ::testing::Test {
protected:
  std::chrono::steady_clock::time_point patience() { return std::chrono::steady_clock::now() + 20s; }

  result<std::unique_ptr<doorbell>> connect(segment_client& by) {
    std::promise<result<std::unique_ptr<doorbell>>> made;
    const auto asked = by.connect_doorbell(server_->address(), patience(),
                                           [&](auto one) { made.set_value(std::move(one)); });
    EXPECT_TRUE(asked);
    return made.get_future().get();
  }

  run_token token_ = run_token::random().value();
  std::unique_ptr<segment_server> server_ = segment_server::start({token_, 100ms, 4, 8}).value();
  std::unique_ptr<segment_client> client_ = segment_client::start({token_, 16, 4, 1 << 20}).value();
};

TEST_F(doorbell_exchange, both_ends_are_connected) {
  std::promise<std::unique_ptr<doorbell>> ours;
  server_->on_doorbell([&](std::unique_ptr<doorbell> one) { ours.set_value(std::move(one)); });
  const auto theirs = connect(*client_).value();
  const auto our_end = ours.get_future().get();
  ASSERT_TRUE(theirs->ring(bytes("knock")));
  EXPECT_EQ(take(*our_end), "knock");
  ASSERT_TRUE(our_end->ring(bytes("come in")));
  EXPECT_EQ(take(*theirs), "come in");
}

TEST_F(doorbell_exchange, segments_are_fetched_beside_them) {
  std::promise<std::unique_ptr<doorbell>> ours;
  server_->on_doorbell([&](std::unique_ptr<doorbell> one) { ours.set_value(std::move(one)); });
  const auto theirs = connect(*client_).value();
  const auto offered = segment::create("test", 4096).value();
  std::promise<result<segment>> fetched;
  ASSERT_TRUE(client_->fetch(server_->address(), server_->offer(offered).value(), 4096, {}, patience(),
                             [&](result<segment> one) { fetched.set_value(std::move(one)); }));
  EXPECT_TRUE(fetched.get_future().get());
}

TEST_F(doorbell_exchange, a_server_that_takes_none_says_so) {
  const auto made = connect(*client_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::role_lost);
}

TEST_F(doorbell_exchange, a_stranger_gets_none) {
  bool was_given = false;
  server_->on_doorbell([&](std::unique_ptr<doorbell>) { was_given = true; });
  const auto stranger = segment_client::start({run_token::random().value(), 16, 4, 1 << 20}).value();
  const auto made = connect(*stranger);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::fenced);
  server_.reset();
  EXPECT_FALSE(was_given);
}

TEST_F(doorbell_exchange, of_a_server_that_is_gone_the_connect_fails) {
  const auto address = server_->address();
  server_.reset();
  std::promise<error_code> failed;
  ASSERT_TRUE(
      client_->connect_doorbell(address, patience(), [&](auto one) { failed.set_value(one.error().code); }));
  EXPECT_EQ(failed.get_future().get(), error_code::system);
}

} // namespace
} // namespace dlrun::transport
