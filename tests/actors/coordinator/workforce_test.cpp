#include "actors/coordinator/workforce.hpp"

#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

constexpr std::uint64_t agent = 9;
constexpr workforce_config two_of_four{.specified = 2, .most = 4, .agent = agent};

TEST(workforce_test, begins_with_what_the_specification_wants) {
  EXPECT_EQ(workforce(two_of_four, std::nullopt).wanted(), (protocol::workers_wanted{agent, 0, 2}));
}

TEST(workforce_test, a_number_counts_once_it_is_journaled) {
  workforce force(two_of_four, std::nullopt);
  const auto order = force.on_order({agent, 1, 4});
  ASSERT_TRUE(order);
  EXPECT_EQ(*order, (journaled_workers{4, 2, agent, 1}));
  EXPECT_EQ(force.wanted().workers, 2U);
  force.on_journaled(*order);
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent, 1, 4}));
}

TEST(workforce_test, a_request_is_journaled_once_and_older_ones_not_at_all) {
  workforce force(two_of_four, std::nullopt);
  const auto third = force.on_order({agent, 3, 4});
  EXPECT_FALSE(force.on_order({agent, 3, 4})) << "it is on its way";
  EXPECT_FALSE(force.on_order({agent, 2, 1}));
  force.on_journaled(*third);
  EXPECT_FALSE(force.on_order({agent, 3, 4}));
}

TEST(workforce_test, writes_may_end_in_any_order) {
  workforce force(two_of_four, std::nullopt);
  const auto first = force.on_order({agent, 1, 4});
  const auto second = force.on_order({agent, 2, 1});
  force.on_journaled(*second);
  force.on_journaled(*first);
  EXPECT_EQ(force.wanted().workers, 1U);
}

TEST(workforce_test, requests_of_another_root_and_numbers_that_cannot_be_are_ignored) {
  workforce force(two_of_four, std::nullopt);
  EXPECT_FALSE(force.on_order({agent + 1, 1, 3}));
  EXPECT_FALSE(force.on_order({agent, 1, 0}));
  EXPECT_FALSE(force.on_order({agent, 1, 5}));
}

TEST(workforce_test, the_next_coordinator_of_the_same_root_knows_number_and_request) {
  workforce force(two_of_four, journaled_workers{4, 2, agent, 7});
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent, 7, 4}));
  EXPECT_FALSE(force.on_order({agent, 7, 4}));
}

TEST(workforce_test, a_run_that_is_resumed_goes_on_with_the_number_and_counts_requests_anew) {
  workforce force(two_of_four, journaled_workers{4, 2, agent - 1, 7});
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent, 0, 4}));
  EXPECT_TRUE(force.on_order({agent, 1, 1}));
}

TEST(workforce_test, who_changes_the_specification_at_a_resume_gets_what_it_says) {
  const workforce force(two_of_four, journaled_workers{4, 3, agent - 1, 7});
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent, 0, 2}));
}

TEST(workforce_test, of_another_root_it_keeps_the_number_and_counts_its_requests_anew) {
  workforce force(two_of_four, std::nullopt);
  const auto asked = force.on_order({agent, 3, 4});
  ASSERT_TRUE(asked.has_value());
  force.serve(agent + 1);
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent + 1, 0, 2}));
  force.on_journaled(*asked);
  EXPECT_EQ(force.wanted(), (protocol::workers_wanted{agent + 1, 0, 4})) << "it was on its way";
  EXPECT_FALSE(force.on_order({agent, 4, 1}));
  EXPECT_TRUE(force.on_order({agent + 1, 1, 1}));
}

} // namespace
} // namespace dlrun::coordinator
