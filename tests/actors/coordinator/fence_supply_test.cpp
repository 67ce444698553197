#include "actors/coordinator/fence_supply.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::role_name;
using testing::IsEmpty;
using testing::SizeIs;

constexpr role_name itself{protocol::role_kind::coordinator, 0};
constexpr role_name supplied{protocol::role_kind::worker, 0};

/// The agent's number is 7.
class fence_supply_test : public testing::Test {
protected:
  fence_supply make(bool journals) {
    return fence_supply({{journals, 7, [this] { return ++token; }}, 2, 10}, {itself, supplied});
  }
  std::vector<protocol::grant> granted(const role_name& role) const {
    coordinator_actions out;
    supply.grant(role, out);
    std::vector<protocol::grant> all;
    for (const auto& one : test::only<send_grant>(out)) all.push_back(one.grant);
    return all;
  }
  journal_fences write() {
    coordinator_actions out;
    supply.journal(out);
    return test::the_only<journal_fences>(out);
  }

  std::uint64_t token = 1000;
  fence_supply supply = make(true);
};

TEST_F(fence_supply_test, a_role_gets_its_spare_fences_and_one_more_while_it_does_not_run) {
  supply = make(false);
  supply.on_agent(7);
  EXPECT_TRUE(supply.issue(supplied, true));
  EXPECT_THAT(granted(supplied).at(0).fences, SizeIs(2));
  EXPECT_FALSE(supply.issue(supplied, true)) << "they are there";
  EXPECT_TRUE(supply.issue(supplied, false));
  EXPECT_THAT(granted(supplied).at(0).fences, SizeIs(3));
  supply.issue(itself, true);
  EXPECT_THAT(granted(itself).at(0).fences, SizeIs(10));
}

TEST_F(fence_supply_test, nothing_is_granted_before_there_is_an_agent) {
  supply = make(false);
  supply.issue(supplied, true);
  EXPECT_THAT(granted(supplied), IsEmpty());
  EXPECT_FALSE(supply.on_agent(std::nullopt)) << "the one that the job began with";
  EXPECT_EQ(granted(supplied).at(0).agent, 7U);
}

TEST_F(fence_supply_test, a_fence_is_granted_when_it_is_journaled_and_what_came_meanwhile_is_written_next) {
  supply.on_agent(7);
  supply.issue(supplied, true);
  const auto order = write();
  EXPECT_THAT(granted(supplied), IsEmpty());
  supply.issue(supplied, false);
  coordinator_actions out;
  supply.journal(out);
  EXPECT_THAT(out, IsEmpty()) << "one write at a time";
  supply.on_journaled(order.id + 1, true, out);
  EXPECT_THAT(out, IsEmpty()) << "nobody ordered that";
  supply.on_journaled(order.id, true, out);
  EXPECT_THAT(test::the_only<send_grant>(out).grant.fences, SizeIs(2));
  EXPECT_EQ(test::the_only<journal_fences>(out).id, order.id + 1);
}

/// The job is over: what is on its way to the journal is written all the same.
TEST_F(fence_supply_test, a_write_that_ends_late_grants_nothing) {
  supply.on_agent(7);
  supply.issue(supplied, true);
  const auto order = write();
  coordinator_actions out;
  supply.on_journaled(order.id, false, out);
  EXPECT_THAT(out, IsEmpty());
}

TEST_F(fence_supply_test, another_agent_gets_none_of_the_fences_of_the_one_before) {
  supply = make(false);
  supply.on_agent(7);
  supply.issue(supplied, true);
  EXPECT_FALSE(supply.on_agent(7));
  EXPECT_TRUE(supply.on_agent(8));
  EXPECT_THAT(granted(supplied), IsEmpty());
  supply.issue(supplied, true);
  EXPECT_EQ(granted(supplied).at(0).agent, 8U);
  EXPECT_GT(granted(supplied).at(0).fences.front().incarnation.value, 2U);
}

} // namespace
} // namespace dlrun::coordinator
