// Two ends that may talk to one another: handshake, data, ends.
#include "security/certificate_authority.hpp"
#include "tests/security/raw_peers.hpp"

#include <gmock/gmock.h>
#include <numeric>

namespace dlrun::security {
namespace {

using testing::bytes;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::session_pair;
using testing::shard_name;
using testing::take_wire;
using testing::text_of;
using testing::worker_name;

class tls_session_ : public ::testing::Test {
protected:
  session_pair established() const {
    session_pair made(*worker, *shard);
    EXPECT_TRUE(made.carry());
    EXPECT_TRUE(made.client.is_established() && made.server.is_established());
    return made;
  }
  static bytes counted(std::size_t size) {
    bytes some(size);
    for (std::size_t i = 0; i < size; ++i) some[i] = static_cast<std::byte>(i * 31 + i / 251);
    return some;
  }

  certificate_authority authority = certificate_authority::make("j1").value();
  std::shared_ptr<tls_context> worker = tls_context::make(authority.issue(worker_name).value()).value();
  std::shared_ptr<tls_context> shard = tls_context::make(authority.issue(shard_name).value()).value();
};

TEST_F(tls_session_, both_ends_know_whom_they_talk_to) {
  const auto pair = established();
  EXPECT_EQ(pair.client.peer(), shard_name);
  EXPECT_EQ(pair.server.peer(), worker_name);
}

TEST_F(tls_session_, a_client_speaks_first_and_a_server_waits) {
  session_pair pair(*worker, *shard);
  EXPECT_FALSE(pair.client.wire().empty());
  EXPECT_TRUE(pair.server.wire().empty());
  EXPECT_FALSE(pair.client.is_established() || pair.server.is_established());
}

TEST_F(tls_session_, bytes_may_be_split_anywhere) {
  for (const std::size_t piece : {1, 2, 3, 5, 7, 64, 1000}) {
    session_pair pair(*worker, *shard);
    ASSERT_TRUE(pair.carry(piece)) << piece;
    ASSERT_TRUE(pair.client.write(bytes_of("to the server")));
    ASSERT_TRUE(pair.server.write(bytes_of("to the client")));
    ASSERT_TRUE(pair.carry(piece)) << piece;
    EXPECT_EQ(text_of(pair.at_server), "to the server");
    EXPECT_EQ(text_of(pair.at_client), "to the client");
  }
}

TEST_F(tls_session_, what_follows_the_handshake_at_once_is_read_with_it) {
  session_pair pair(*worker, *shard);
  bytes read;
  ASSERT_TRUE(pair.server.feed(take_wire(pair.client), read));
  ASSERT_TRUE(pair.client.feed(take_wire(pair.server), read));
  ASSERT_TRUE(pair.client.is_established());
  const auto much = counted(300'000);
  ASSERT_TRUE(pair.client.write(much));
  ASSERT_TRUE(pair.server.feed(take_wire(pair.client), read));
  EXPECT_EQ(read, much);
}

TEST_F(tls_session_, much_goes_both_ways) {
  auto pair = established();
  const auto much = counted(3'000'001);
  ASSERT_TRUE(pair.client.write(much));
  ASSERT_TRUE(pair.server.write(much));
  ASSERT_TRUE(pair.carry(70'000));
  EXPECT_EQ(pair.at_server, much);
  EXPECT_EQ(pair.at_client, much);
}

TEST_F(tls_session_, plaintext_is_put_where_it_belongs_whatever_came_with_it) {
  auto pair = established();
  const auto much = counted(200'000);
  ASSERT_TRUE(pair.client.write(much));
  const auto wire = take_wire(pair.client);
  bytes read(much.size());
  std::size_t done = 0;
  for (std::size_t at = 0; at < wire.size(); at += 50'000) {
    auto some = std::span<const std::byte>(wire).subspan(at, std::min<std::size_t>(50'000, wire.size() - at));
    for (;;) {
      const auto room = std::span(read).subspan(done, std::min<std::size_t>(777, read.size() - done));
      if (room.empty()) break;
      const auto got = pair.server.read(some, room).value();
      done += got;
      if (got < room.size()) break;
    }
    EXPECT_TRUE(some.empty());
  }
  EXPECT_EQ(read, much);
}

TEST_F(tls_session_, what_was_sent_is_dropped_and_the_rest_stays_in_order) {
  auto pair = established();
  ASSERT_TRUE(pair.client.write(bytes_of("one")));
  bytes wire;
  while (!pair.client.wire().empty()) {
    wire.push_back(pair.client.wire().front());
    pair.client.sent(1);
    if (wire.size() == 10) {
      ASSERT_TRUE(pair.client.write(bytes_of("two")));
    }
  }
  ASSERT_TRUE(pair.server.feed(wire, pair.at_server));
  EXPECT_EQ(text_of(pair.at_server), "onetwo");
}

TEST_F(tls_session_, a_session_that_moves_goes_on) {
  auto pair = established();
  auto moved = std::move(pair.client);
  ASSERT_TRUE(moved.write(bytes_of("moved")));
  ASSERT_TRUE(pair.server.feed(take_wire(moved), pair.at_server));
  EXPECT_EQ(text_of(pair.at_server), "moved");
}

TEST_F(tls_session_, a_key_is_used_for_so_much_and_then_another) {
  const auto change_often = [&](const certificate_name& name, std::uint64_t most) {
    return tls_context::make(authority.issue(name).value(), {.key_bytes_max = most}).value();
  };
  const auto seldom = change_often(worker_name, 1 << 30);
  const auto often = change_often(worker_name, 20'000);
  const auto much = counted(100'000);
  std::vector<std::size_t> sizes;
  for (const auto& context : {seldom, often}) {
    session_pair pair(*context, *shard);
    ASSERT_TRUE(pair.carry());
    ASSERT_TRUE(pair.client.write(much));
    sizes.push_back(pair.client.wire().size());
    ASSERT_TRUE(pair.server.write(much));
    ASSERT_TRUE(pair.carry(3000));
    EXPECT_EQ(pair.at_server, much);
    EXPECT_EQ(pair.at_client, much);
  }
  EXPECT_GT(sizes[1], sizes[0]) << "each change is announced";
}

// ---- how it ends

TEST_F(tls_session_, an_end_that_was_told_is_told_from_a_cut) {
  auto pair = established();
  ASSERT_TRUE(pair.client.write(bytes_of("all")));
  EXPECT_EQ(pair.server.end_of_wire().error().code, error_code::system);
  pair.client.close();
  ASSERT_TRUE(pair.carry());
  EXPECT_EQ(text_of(pair.at_server), "all");
  EXPECT_TRUE(pair.server.is_closed());
  EXPECT_TRUE(pair.server.end_of_wire());
  EXPECT_FALSE(pair.client.is_closed());
}

TEST_F(tls_session_, a_truncated_stream_is_a_cut_wherever_it_ends) {
  auto pair = established();
  ASSERT_TRUE(pair.client.write(bytes_of("some")));
  auto wire = take_wire(pair.client);
  wire.resize(wire.size() - 1);
  ASSERT_TRUE(pair.server.feed(wire, pair.at_server));
  EXPECT_TRUE(pair.at_server.empty()) << "a record is whole or nothing";
  EXPECT_THAT(pair.server.end_of_wire().error().message, HasSubstr("cut off"));
  const auto silent = tls_session::start(*shard, tls_session::side::server).value();
  EXPECT_THAT(silent.end_of_wire().error().message, HasSubstr("before it had shown who it is"));
}

TEST_F(tls_session_, bytes_that_were_changed_end_the_session_and_the_error_stays) {
  auto pair = established();
  ASSERT_TRUE(pair.client.write(bytes_of("some")));
  auto wire = take_wire(pair.client);
  wire[wire.size() / 2] ^= std::byte{1};
  const auto fed = pair.server.feed(wire, pair.at_server);
  EXPECT_EQ(fed.error().code, error_code::protocol);
  EXPECT_THAT(fed.error().message, HasSubstr("changed on its way"));
  EXPECT_TRUE(pair.at_server.empty());
  EXPECT_EQ(pair.server.feed({}, pair.at_server).error().message, fed.error().message);
  EXPECT_EQ(pair.server.write(bytes_of("more")).error().message, fed.error().message);
  EXPECT_EQ(pair.server.end_of_wire().error().message, fed.error().message);
}

} // namespace
} // namespace dlrun::security
