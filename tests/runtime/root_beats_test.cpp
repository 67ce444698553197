#include "runtime/root_beats.hpp"

#include "base/ipv4_address.hpp"

#include <fmt/format.h>
#include <future>
#include <gtest/gtest.h>
#include <utility>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t run = 7;
constexpr std::uint64_t boot_of_host = 8;

/// Becomes ready when that peer has answered a beat.
std::future<void> answer_of(agent::beat_service& beats, const agent::beat_peer& peer) {
  auto answered = std::make_shared<std::promise<void>>();
  auto future = answered->get_future();
  const auto begun = beats.watch(peer, [answered, told = false](const agent::sighting& seen) mutable {
    if (seen.seen == agent::sight::there && !std::exchange(told, true)) answered->set_value();
  });
  EXPECT_TRUE(begun) << begun.error().message;
  return future;
}

TEST(root_beats, a_host_that_has_its_bundle_and_the_root_see_each_other) {
  const auto root = start_beats("127.0.0.1", run);
  ASSERT_TRUE(root) << root.error().message;
  bootstrap::HostBundle bundle;
  bundle.set_host("beta");
  bundle.set_root("alpha");
  tell_of_beats(*root, bundle);

  const auto there = agent::beat_exchange::start({.address = "127.0.0.1", .boot = boot_of_host});
  ASSERT_TRUE(there) << there.error().message;
  const auto root_answers = answer_of(**there, root_of(bundle));
  const auto host_answers =
      answer_of(*root->exchange, agent::host_seen_by_root(root->key, "beta", boot_of_host));
  EXPECT_EQ(root_answers.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(host_answers.wait_for(20s), std::future_status::ready);
}

TEST(root_beats, a_host_is_found_by_a_root_that_comes_back_at_another_address) {
  auto root = start_beats("127.0.0.1", run);
  ASSERT_TRUE(root) << root.error().message;
  bootstrap::HostBundle bundle;
  bundle.set_host("beta");
  bundle.set_root("alpha");
  bundle.set_address("127.0.0.2");
  tell_of_beats(*root, bundle);
  const auto there = start_host_beats(bundle, boot_of_host);
  ASSERT_TRUE(there) << there.error().message;
  const auto port = base::parse_ipv4_address(root->exchange->address())->sin_port;
  EXPECT_EQ((*there)->address(), fmt::format("127.0.0.2:{}", ntohs(port)));

  std::promise<std::string> moved;
  const auto begun = (*there)->watch(root_of(bundle), [&, told = false](const agent::sighting& seen) mutable {
    if (seen.at.starts_with("127.0.0.3:") && !std::exchange(told, true)) moved.set_value(seen.at);
  });
  ASSERT_TRUE(begun) << begun.error().message;
  root->exchange.reset();
  const auto next = start_beats(
      {.address = "127.0.0.3", .port = ntohs(port), .boot = run, .last_sequence = 1000}, root->key);
  ASSERT_TRUE(next) << next.error().message;
  ASSERT_TRUE(call_host(*next, "beta", "127.0.0.2", ntohs(port), 20s));
  auto where = moved.get_future();
  ASSERT_EQ(where.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(where.get(), next->exchange->address());
}

TEST(root_beats, a_host_at_the_number_of_the_root_leaves_it_the_port) {
  auto root = start_beats("127.0.0.1", run);
  ASSERT_TRUE(root) << root.error().message;
  bootstrap::HostBundle bundle;
  bundle.set_address("127.0.0.1");
  tell_of_beats(*root, bundle);
  const auto roots = root->exchange->address();
  root->exchange.reset(); // it is free
  const auto there = start_host_beats(bundle, boot_of_host);
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_NE((*there)->address(), roots);
}

TEST(root_beats, a_host_whose_port_somebody_has_takes_another) {
  const auto root = start_beats("127.0.0.1", run);
  ASSERT_TRUE(root) << root.error().message;
  bootstrap::HostBundle bundle;
  bundle.set_address("127.0.0.2");
  tell_of_beats(*root, bundle);
  const auto first = start_host_beats(bundle, boot_of_host);
  const auto second = start_host_beats(bundle, boot_of_host + 1);
  ASSERT_TRUE(first && second);
  EXPECT_NE((*first)->address(), (*second)->address());
}

} // namespace
} // namespace dlrun::runtime
