#include "runtime/root_beats.hpp"

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

} // namespace
} // namespace dlrun::runtime
