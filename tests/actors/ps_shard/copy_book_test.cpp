#include "actors/ps_shard/copy_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr incarnation keeper{7};

own_store store_up_to(std::uint64_t end, std::vector<own_snapshot> snapshots = {}) {
  return {protocol::first_history(), {{{0}, {end}}}, {{{0}, {end}}}, std::move(snapshots), {}};
}

protocol::copy_standing standing_at(std::uint64_t end, std::vector<version_id> snapshots = {}) {
  protocol::copy_standing said;
  said.incarnation = keeper;
  said.end = {end};
  said.restorable = {{{0}, {end}}};
  said.snapshots = std::move(snapshots);
  return said;
}

TEST(copy_book, without_a_copy_what_is_logged_is_committed) {
  copy_book book;
  EXPECT_EQ(book.on_logged({3}).committed, version_id{3});
  EXPECT_EQ(book.on_logged({3}).committed, std::nullopt);
  EXPECT_THAT(book.on_snapshot({3}).snapshots, ElementsAre(version_id{3}));
}

TEST(copy_book, a_copy_that_lacks_something_does_not_count_and_delays_nothing) {
  copy_book book;
  book.on_logged({5});
  book.on_standing(standing_at(4), store_up_to(5));
  EXPECT_EQ(book.counted(), incarnation{});
  EXPECT_EQ(book.on_logged({6}).committed, version_id{6});
}

TEST(copy_book, a_copy_that_has_all_counts_and_nothing_is_committed_that_it_lacks) {
  copy_book book;
  book.on_logged({5});
  book.on_standing(standing_at(5), store_up_to(5));
  EXPECT_EQ(book.counted(), keeper);
  EXPECT_EQ(book.on_logged({7}).committed, std::nullopt);
  EXPECT_TRUE(book.is_awaited());
  EXPECT_EQ(book.on_standing(standing_at(6), store_up_to(7)).committed, version_id{6});
  EXPECT_EQ(book.on_standing(standing_at(9), store_up_to(7)).committed, version_id{7});
  EXPECT_FALSE(book.is_awaited());
}

TEST(copy_book, a_snapshot_is_told_when_the_copy_has_it_too) {
  copy_book book;
  book.on_logged({4});
  book.on_standing(standing_at(4), store_up_to(4));
  EXPECT_THAT(book.on_snapshot({4}).snapshots, IsEmpty());
  EXPECT_THAT(book.on_standing(standing_at(4), store_up_to(4, {{{4}, {0}}})).snapshots, IsEmpty());
  EXPECT_THAT(book.on_standing(standing_at(4, {{4}}), store_up_to(4, {{{4}, {0}}})).snapshots,
              ElementsAre(version_id{4}));
}

TEST(copy_book, a_copy_without_the_snapshots_that_were_told_does_not_count) {
  copy_book book;
  book.on_logged({4});
  book.on_snapshot({2});
  book.on_standing(standing_at(4), store_up_to(4, {{{2}, {0}}}));
  EXPECT_EQ(book.counted(), incarnation{});
  book.on_standing(standing_at(4, {{2}}), store_up_to(4, {{{2}, {0}}}));
  EXPECT_EQ(book.counted(), keeper);
}

TEST(copy_book, a_copy_that_begins_above_the_oldest_version_does_not_count) {
  copy_book book;
  book.on_logged({9});
  auto said = standing_at(9);
  said.restorable = {{{0}, {0}}, {{4}, {9}}};
  book.on_standing(said, store_up_to(9));
  EXPECT_EQ(book.counted(), incarnation{});
}

TEST(copy_book, when_its_keeper_is_over_all_that_waited_is_told) {
  copy_book book;
  book.on_logged({1});
  book.on_standing(standing_at(1), store_up_to(1));
  book.on_logged({3});
  book.on_snapshot({2});
  EXPECT_EQ(book.on_keeper(keeper).committed, std::nullopt);
  const auto told = book.on_keeper({8});
  EXPECT_EQ(told.committed, version_id{3});
  EXPECT_THAT(told.snapshots, ElementsAre(version_id{2}));
  EXPECT_EQ(book.counted(), incarnation{});
}

TEST(copy_book, one_that_an_earlier_start_counted_counts_before_it_has_spoken) {
  copy_book book;
  book.restart(protocol::first_history(), {5});
  book.begin_with(keeper);
  EXPECT_FALSE(book.holds_all(store_up_to(5)));
  book.on_standing(standing_at(4), store_up_to(5));
  EXPECT_FALSE(book.holds_all(store_up_to(5)));
  EXPECT_EQ(book.on_logged({6}).committed, std::nullopt);
  book.on_standing(standing_at(5), store_up_to(6));
  EXPECT_TRUE(book.holds_all(store_up_to(6)));
}

TEST(copy_book, of_a_timeline_that_was_left_the_copy_counts_up_to_the_branch) {
  copy_book book;
  book.on_logged({8});
  book.on_standing(standing_at(8), store_up_to(8));
  const protocol::history history{{{0}, {0}}, {{1}, {5}}};
  book.restart(history, {5});
  EXPECT_EQ(book.on_logged({6}).committed, std::nullopt);
  own_store mine{history, {{{0}, {6}}}, {{{0}, {6}}}, {}, {}};
  EXPECT_EQ(book.on_standing(standing_at(8), mine).committed, std::nullopt);
  auto there = standing_at(6);
  there.timeline = {1};
  EXPECT_EQ(book.on_standing(there, mine).committed, version_id{6});
}

} // namespace
} // namespace dlrun::ps_shard
