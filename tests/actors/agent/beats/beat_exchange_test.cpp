// Sockets and threads: a peer that the test plays itself, and two exchanges with each other.
#include "actors/agent/beats/beat_exchange.hpp"

#include "actors/common/clock.hpp"
#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <condition_variable>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <tuple>
#include <vector>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 10s;

/// What an exchange told.
class sightings {
public:
  beat_service::told teller() {
    return [this](const sighting& what) {
      const std::scoped_lock lock{mutex_};
      all_.push_back(what);
      changed_.notify_all();
    };
  }
  bool wait_for(sight wanted) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return !all_.empty() && all_.back().seen == wanted; });
  }
  std::vector<sighting> all() {
    const std::scoped_lock lock{mutex_};
    return all_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<sighting> all_;
};

/// A UDP socket of the loopback.
class hand_socket {
public:
  hand_socket() {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    address_ = fmt::format("127.0.0.1:{}", ntohs(own.sin_port));
  }
  const std::string& address() const { return address_; }

  void send(std::span<const std::byte> bytes, const std::string& to) const {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(static_cast<std::uint16_t>(std::stoi(to.substr(to.rfind(':') + 1))));
    EXPECT_EQ(
        ::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&there), sizeof there),
        static_cast<ssize_t>(bytes.size()));
  }
  /// The next datagram. @returns its bytes, none after the patience.
  std::vector<std::byte> receive() const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) != 1) return {};
    std::vector<std::byte> bytes(1000);
    const auto got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  bool has_any() const {
    pollfd now{fd_.get(), POLLIN, 0};
    return ::poll(&now, 1, 0) == 1;
  }

private:
  base::unique_fd fd_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::string address_;
};

class beat_exchange_test : public testing::Test {
protected:
  beat_exchange_test() {
    EXPECT_TRUE(root->watch({"beta", host_boot, "", keys_of_root(key)}, seen.teller()));
    hand.send(answer({}), root->address()); // so that it knows where to send its own
  }
  /// The next beat of the root.
  beat next_of_root() {
    const auto heard = opened(hand.receive(), mine.receive);
    EXPECT_TRUE(heard.has_value());
    return heard.value_or(beat{});
  }
  beat_datagram answer(const beat& heard) {
    return sealed({.boot = host_boot,
                   .sequence = ++sequence,
                   .heard_boot = heard.boot,
                   .heard_sequence = heard.sequence},
                  mine.send);
  }

  static constexpr std::uint64_t root_boot = 5;
  static constexpr std::uint64_t host_boot = 7;
  sightings seen;
  hand_socket hand;
  base::hmac_key key = base::random_key().value();
  beat_keys mine = keys_of_host(key);
  std::uint64_t sequence = 0;
  std::unique_ptr<beat_exchange> root =
      std::move(*beat_exchange::start({.address = "127.0.0.1", .boot = root_boot}));
};

TEST_F(beat_exchange_test, tells_of_a_peer_that_answers_and_that_ceases_to) {
  hand.send(answer(next_of_root()), root->address());
  ASSERT_TRUE(seen.wait_for(sight::there));
  ASSERT_TRUE(seen.wait_for(sight::silent));
  EXPECT_GE(seen.all().back().silence, 700ms);
  beat last;
  do {
    last = next_of_root();
    hand.send(answer(last), root->address());
  } while (seen.all().back().seen == sight::silent);
  EXPECT_TRUE(seen.wait_for(sight::there));
}

TEST_F(beat_exchange_test, numbers_its_beats_and_says_what_it_hears) {
  const auto first = next_of_root();
  EXPECT_EQ(first.boot, root_boot);
  EXPECT_EQ(first.heard_boot, host_boot);
  EXPECT_EQ(first.heard_sequence, 1U);
  EXPECT_EQ(next_of_root().sequence, first.sequence + 1);
  hand.send(answer(first), root->address());
  for (int i = 0; i < 100; ++i)
    if (next_of_root().heard_sequence == 2) return;
  FAIL() << "it did not hear";
}

// R39: the exchange of a host, and two roots that are played.
TEST(beat_exchange_of_a_host, tells_an_earlier_root_that_it_has_moved_on) {
  constexpr std::uint64_t root_boot = 5;
  constexpr std::uint64_t host_boot = 7;
  const auto key = base::random_key().value();
  const auto roots = keys_of_root(key);
  const hand_socket earlier;
  const hand_socket later;
  const hand_socket stranger;
  sightings seen;
  const auto host = std::move(*beat_exchange::start({.address = "127.0.0.1", .boot = host_boot}));
  ASSERT_TRUE(host->watch({"root", root_boot, earlier.address(), keys_of_host(key)}, seen.teller()));
  const auto say = [&](const hand_socket& from, std::uint64_t sequence) {
    from.send(sealed({.boot = root_boot, .sequence = sequence, .heard_boot = host_boot}, roots.send),
              host->address());
  };
  const auto told_to = [&](const hand_socket& to) {
    const auto heard = opened(to.receive(), roots.receive);
    EXPECT_TRUE(heard.has_value());
    return heard ? heard->heard_sequence : 0;
  };
  say(earlier, 1);
  while (told_to(earlier) != 1) {
  }
  say(later, 1000);
  while (told_to(later) != 1000) {
  }
  while (earlier.has_any()) std::ignore = earlier.receive(); // what it was sent before
  stranger.send(sealed({.boot = root_boot, .sequence = 2}, base::random_key().value()), host->address());
  say(later, 999); // late, of the root that it follows
  say(earlier, 2);
  EXPECT_EQ(told_to(earlier), 1000U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(told_to(later), 1000U);
  EXPECT_FALSE(earlier.has_any()) << "one for each of its beats";
  EXPECT_FALSE(stranger.has_any());
}

TEST_F(beat_exchange_test, sends_to_where_the_newest_beat_came_from) {
  const auto heard = next_of_root();
  const hand_socket elsewhere;
  elsewhere.send(answer(heard), root->address());
  EXPECT_TRUE(opened(elsewhere.receive(), mine.receive).has_value());
}

TEST_F(beat_exchange_test, looks_for_a_peer_where_its_newest_beat_came_from_and_says_where) {
  auto host = std::move(*beat_exchange::start({.address = "127.0.0.1", .boot = 9}));
  sightings by_host;
  const auto pair = base::random_key().value();
  ASSERT_TRUE(host->watch({"alpha", 5, hand.address(), keys_of_host(pair)}, by_host.teller()));
  const hand_socket elsewhere;
  elsewhere.send(sealed({.boot = 5, .sequence = 2}, keys_of_root(pair).send), host->address());
  EXPECT_TRUE(opened(elsewhere.receive(), keys_of_root(pair).receive).has_value());
  ASSERT_TRUE(by_host.wait_for(sight::unproven)); // it is told where, whatever it answers
  EXPECT_EQ(by_host.all().back().at, elsewhere.address());
  hand.send(sealed({.boot = 5, .sequence = 1}, keys_of_root(pair).send), host->address()); // older
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(opened(elsewhere.receive(), keys_of_root(pair).receive).has_value());
  EXPECT_EQ(by_host.all().back().at, elsewhere.address());
}

TEST_F(beat_exchange_test, calls_a_peer_of_which_it_knows_no_start_yet) {
  const hand_socket beta;
  ASSERT_TRUE(root->call({"delta", 0, beta.address(), keys_of_root(key)}, common::now() + 1h));
  const auto call = opened(beta.receive(), mine.receive);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->boot, root_boot);
  // What it says once it watches is newer than its calls.
  sightings by_root;
  ASSERT_TRUE(root->watch({"delta", 11, beta.address(), keys_of_root(key)}, by_root.teller()));
  for (auto last = *call;;) {
    const auto next = opened(beta.receive(), mine.receive);
    ASSERT_TRUE(next.has_value());
    ASSERT_GT(next->sequence, last.sequence);
    last = *next;
    if (last.heard_boot == 11) break;
  }
  // And an answer to a call counts as one.
  beta.send(sealed({.boot = 11, .sequence = 1, .heard_boot = root_boot, .heard_sequence = call->sequence},
                   mine.send),
            root->address());
  ASSERT_TRUE(by_root.wait_for(sight::there) || by_root.wait_for(sight::silent));
  EXPECT_LT(by_root.all().back().silence, patience);
}

TEST_F(beat_exchange_test, calls_nobody_for_longer_than_it_is_told_to) {
  const hand_socket beta;
  ASSERT_TRUE(root->call({"delta", 0, beta.address(), keys_of_root(key)}, common::now()));
  const auto first = next_of_root().sequence;
  while (next_of_root().sequence < first + 3) {
  }
  EXPECT_FALSE(beta.has_any());
  EXPECT_FALSE(root->call({"delta", 0, "beta", keys_of_root(key)}, common::now() + 1h));
}

TEST_F(beat_exchange_test, is_not_moved_by_what_is_no_beat_of_its_peer) {
  const auto heard = next_of_root();
  const auto good = answer(heard);
  auto forged = good;
  forged.back() ^= std::byte{1};
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.resize(longer.size() + 1);
  hand.send(forged, root->address());
  hand.send(longer, root->address());
  hand.send(std::span{good}.first(71), root->address());
  hand.send({}, root->address());
  hand.send(std::vector<std::byte>(60'000, std::byte{0x64}), root->address());
  const hand_socket stranger; // what comes of it is not answered
  stranger.send(sealed(*opened(good, mine.send), base::random_key().value()), root->address());
  const auto after = heard.sequence + 3; // it has read all that before
  while (next_of_root().sequence < after) {
  }
  EXPECT_TRUE(seen.all().empty());
  hand.send(good, root->address());
  EXPECT_TRUE(seen.wait_for(sight::there));
}

TEST_F(beat_exchange_test, is_not_deceived_by_beats_that_are_sent_again) {
  const auto good = answer(next_of_root());
  hand.send(good, root->address());
  ASSERT_TRUE(seen.wait_for(sight::there));
  while (seen.all().back().seen == sight::there) {
    next_of_root(); // it goes to `hand` still
    hand_socket{}.send(good, root->address());
  }
  EXPECT_EQ(seen.all().back().seen, sight::silent);
}

TEST_F(beat_exchange_test, goes_on_where_it_was_when_told_to_watch_the_same_start_again) {
  const auto heard = next_of_root();
  EXPECT_TRUE(root->watch({"beta", host_boot, "", keys_of_root(key)}, seen.teller()));
  EXPECT_GT(next_of_root().sequence, heard.sequence);
}

TEST_F(beat_exchange_test, says_how_long_ago_the_actor_had_a_turn_once_it_had_one) {
  EXPECT_EQ(next_of_root().turn_age_ms, 0U);
  root->note_turn();
  for (int i = 0; i < 100; ++i)
    if (next_of_root().turn_age_ms > 100) return;
  FAIL() << "the age does not grow";
}

TEST_F(beat_exchange_test, two_of_them_see_each_other_and_the_end_of_the_other) {
  auto host = std::move(*beat_exchange::start({.address = "127.0.0.1", .boot = 9}));
  sightings by_root;
  sightings by_host;
  ASSERT_TRUE(root->watch({"gamma", 9, "", keys_of_root(key)}, by_root.teller()));
  ASSERT_TRUE(host->watch({"alpha", root_boot, root->address(), keys_of_host(key)}, by_host.teller()));
  EXPECT_TRUE(by_root.wait_for(sight::there));
  EXPECT_TRUE(by_host.wait_for(sight::there));
  host.reset();
  EXPECT_TRUE(by_root.wait_for(sight::silent));
  root.reset(); // nothing is told after this
}

TEST_F(beat_exchange_test, refuses_what_is_no_address) {
  for (const auto* wrong : {"beta", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:5"})
    EXPECT_EQ(root->watch({"gamma", 9, wrong, keys_of_root(key)}, seen.teller()).error().code,
              error_code::bad_usage)
        << wrong;
  const auto elsewhere = beat_exchange::start({.address = "192.0.2.1", .boot = root_boot});
  ASSERT_FALSE(elsewhere.has_value());
  EXPECT_EQ(elsewhere.error().code, error_code::bad_usage);
}

} // namespace
} // namespace dlrun::agent
