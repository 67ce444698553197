#include "actors/data_dispatcher/worker_watch.hpp"

#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

constexpr protocol::time_point noon{std::chrono::hours(12)};

protocol::worker_status status_of(std::uint64_t start, std::uint64_t slots_computed) {
  protocol::worker_status status;
  status.worker = {3};
  status.self = {{start}, 0};
  status.slots_computed = slots_computed;
  return status;
}

TEST(worker_watch, keeps_what_the_newest_start_has_said_last) {
  worker_watch watch;
  watch.on_status(status_of(1, 40), noon);
  watch.on_status(status_of(2, 5), noon + std::chrono::seconds(1));
  watch.on_status(status_of(1, 41), noon + std::chrono::seconds(2));
  ASSERT_EQ(watch.heard().size(), 1U);
  const auto& heard = watch.heard().at({3});
  EXPECT_EQ(heard.incarnation, incarnation{2});
  EXPECT_EQ(heard.slots_computed, 5U);
  EXPECT_EQ(heard.at, noon + std::chrono::seconds(1));
}

TEST(worker_watch, silence_that_is_excused_counts_from_then) {
  worker_watch watch;
  watch.on_status(status_of(1, 40), noon);
  watch.excuse_silence(noon + std::chrono::seconds(5));
  EXPECT_EQ(watch.heard().at({3}).at, noon + std::chrono::seconds(5));
}

} // namespace
} // namespace dlrun::data_dispatcher
