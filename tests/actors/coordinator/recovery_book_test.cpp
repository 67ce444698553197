#include "actors/coordinator/recovery_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::ps_shard_role;
using protocol::role_name;
using protocol::worker_role;
using std::chrono::milliseconds;
using testing::IsEmpty;
using testing::SizeIs;

constexpr protocol::time_point now{std::chrono::hours(1)};

protocol::role_exited loss(role_name role, std::uint64_t incarnation) {
  return {role, {{incarnation}, 1}, "killed by signal 9 (SIGKILL)", 2000, true};
}

TEST(recovery_book, a_loss_is_made_good_by_the_first_word_of_a_newer_start_and_by_no_other) {
  recovery_book book;
  book.add(loss(worker_role({1}), 4), now);
  EXPECT_TRUE(book.has(worker_role({1}), {4}));
  EXPECT_FALSE(book.has(worker_role({1}), {5}));
  EXPECT_FALSE(book.has(worker_role({0}), {4}));
  book.on_redispatched({1}, {4}, milliseconds(8));
  EXPECT_THAT(book.on_resumed(worker_role({1}), {4}, now), IsEmpty()) << "what the lost one still said";
  EXPECT_THAT(book.on_resumed(worker_role({0}), {5}, now), IsEmpty());
  book.on_replaced(worker_role({1}), {5});
  EXPECT_EQ(book.all().at(0).replacement, incarnation{5});
  EXPECT_THAT(book.on_resumed(worker_role({1}), {6}, now + milliseconds(300)), SizeIs(1));
  EXPECT_THAT(book.on_resumed(worker_role({1}), {6}, now + milliseconds(400)), IsEmpty()) << "told again";
  const auto& record = book.all().at(0);
  EXPECT_EQ(record.cause, "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(record.replacement, incarnation{6}) << "the one before it did not get there";
  EXPECT_EQ(record.detected, milliseconds(2));
  EXPECT_EQ(record.redispatched, milliseconds(8));
  EXPECT_EQ(record.resumed, milliseconds(300));
}

TEST(recovery_book, one_start_makes_all_losses_of_its_role_before_it_good) {
  recovery_book book;
  book.add(loss(ps_shard_role({0}), 1), now);
  book.add(loss(ps_shard_role({0}), 2), now + milliseconds(50));
  const auto made_good = book.on_resumed(ps_shard_role({0}), {3}, now + milliseconds(80));
  ASSERT_THAT(made_good, SizeIs(2));
  EXPECT_EQ(made_good[0].resumed, milliseconds(80));
  EXPECT_EQ(made_good[1].resumed, milliseconds(30));
}

TEST(recovery_book, what_the_agent_noticed_while_there_was_no_coordinator_has_its_time) {
  recovery_book book;
  auto earlier = loss(worker_role({0}), 1);
  earlier.age_us = 40'000;
  book.add(earlier, now);
  EXPECT_EQ(book.on_resumed(worker_role({0}), {2}, now).at(0).resumed, milliseconds(40));
}

TEST(recovery_book, steps_that_are_made_again_are_the_doing_of_the_newest_loss_that_is_not_made_good) {
  recovery_book book;
  book.on_steps_redone(3); // of a loss before this start of the coordinator
  book.add(loss(ps_shard_role({0}), 1), now);
  book.add(loss(worker_role({0}), 1), now);
  book.add(loss({protocol::role_kind::coordinator, 0}, 1), now);
  book.on_steps_redone(7);
  EXPECT_EQ(book.all()[0].steps_redone, 7U) << "the PS shard took what nobody keeps";
  EXPECT_EQ(book.all()[1].steps_redone, 0U);
  book.on_resumed(ps_shard_role({0}), {2}, now);
  book.on_steps_redone(2);
  EXPECT_EQ(book.all()[1].steps_redone, 2U) << "a record that ended its worker";
  EXPECT_EQ(book.all()[2].steps_redone, 0U) << "a coordinator takes nothing with it";
}

} // namespace
} // namespace dlrun::coordinator
