#include "actors/ps_shard/copy_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr incarnation keeper{7};
constexpr protocol::time_point begun{};

own_store store_up_to(std::uint64_t end, std::vector<version_id> snapshots = {}) {
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
  EXPECT_THAT(book.on_snapshot({0}, {3}).snapshots, ElementsAre(version_id{3}));
}

TEST(copy_book, a_copy_that_lacks_more_than_the_last_steps_does_not_count_and_delays_nothing) {
  copy_book book;
  book.on_logged({12});
  book.on_standing(standing_at(3), store_up_to(12), begun);
  EXPECT_EQ(book.counted(), incarnation{});
  EXPECT_EQ(book.on_logged({13}).committed, version_id{13});
}

/// R22: else it would be a step behind with each word, while steps are made.
TEST(copy_book, a_copy_that_lacks_the_last_steps_holds_back_what_is_committed_until_it_counts) {
  copy_book book;
  book.on_logged({5});
  book.on_standing(standing_at(3), store_up_to(5), begun);
  EXPECT_EQ(book.counted(), incarnation{});
  EXPECT_EQ(book.on_logged({7}).committed, std::nullopt);
  EXPECT_TRUE(book.is_log_awaited());
  EXPECT_EQ(book.on_standing(standing_at(5), store_up_to(7), begun).committed, std::nullopt);
  EXPECT_EQ(book.counted(), keeper);
  EXPECT_EQ(book.on_standing(standing_at(7), store_up_to(7), begun).committed, version_id{7});
}

TEST(copy_book, a_copy_that_stays_behind_holds_back_after_a_while) {
  copy_book book;
  book.on_logged({100});
  book.on_standing(standing_at(50), store_up_to(100), begun);
  EXPECT_EQ(book.on_logged({200}).committed, version_id{200});
  book.on_standing(standing_at(60), store_up_to(200), begun + copy_book::behind_max);
  EXPECT_EQ(book.on_logged({201}).committed, std::nullopt);
}

TEST(copy_book, a_copy_without_its_oldest_version_holds_nothing_back_however_long_it_takes) {
  copy_book book;
  book.on_logged({100});
  const own_store mine{protocol::first_history(), {{{0}, {0}}, {{40}, {100}}}, {{{40}, {100}}}, {{40}}, {40}};
  for (int hours = 0; hours < 3; ++hours)
    book.on_standing(standing_at(0), mine, begun + std::chrono::hours(hours));
  EXPECT_EQ(book.on_logged({101}).committed, version_id{101});
}

TEST(copy_book, a_copy_that_holds_back_for_too_long_does_so_again_only_when_it_gets_further) {
  copy_book book;
  book.on_logged({5});
  book.on_standing(standing_at(3), store_up_to(5), begun);
  book.on_logged({6});
  EXPECT_EQ(book.let_go().committed, version_id{6});
  book.on_standing(standing_at(3), store_up_to(6), begun);
  EXPECT_EQ(book.on_logged({7}).committed, version_id{7});
  book.on_standing(standing_at(4), store_up_to(7), begun);
  EXPECT_EQ(book.on_logged({8}).committed, std::nullopt);
  book.on_standing(standing_at(8), store_up_to(8), begun);
  ASSERT_EQ(book.counted(), keeper);
  book.on_logged({9});
  EXPECT_EQ(book.let_go().committed, std::nullopt) << "one that counts is for the agent to end";
}

TEST(copy_book, a_copy_that_has_all_counts_and_nothing_is_committed_that_it_lacks) {
  copy_book book;
  book.on_logged({5});
  book.on_standing(standing_at(5), store_up_to(5), begun);
  EXPECT_EQ(book.counted(), keeper);
  EXPECT_EQ(book.on_logged({7}).committed, std::nullopt);
  EXPECT_TRUE(book.is_log_awaited());
  EXPECT_EQ(book.on_standing(standing_at(6), store_up_to(7), begun).committed, version_id{6});
  EXPECT_EQ(book.on_standing(standing_at(9), store_up_to(7), begun).committed, version_id{7});
  EXPECT_FALSE(book.is_log_awaited());
}

TEST(copy_book, a_snapshot_is_told_when_the_copy_has_it_too) {
  copy_book book;
  book.on_logged({4});
  book.on_standing(standing_at(4), store_up_to(4), begun);
  EXPECT_THAT(book.on_snapshot({0}, {4}).snapshots, IsEmpty());
  EXPECT_THAT(book.on_standing(standing_at(4), store_up_to(4, {{4}}), begun).snapshots, IsEmpty());
  EXPECT_THAT(book.on_standing(standing_at(4, {{4}}), store_up_to(4, {{4}}), begun).snapshots,
              ElementsAre(version_id{4}));
}

TEST(copy_book, a_copy_without_the_snapshots_that_were_told_does_not_count) {
  copy_book book;
  book.on_logged({4});
  book.on_snapshot({0}, {2});
  book.on_standing(standing_at(4), store_up_to(4, {{2}}), begun);
  EXPECT_EQ(book.counted(), incarnation{});
  book.on_standing(standing_at(4, {{2}}), store_up_to(4, {{2}}), begun);
  EXPECT_EQ(book.counted(), keeper);
}

TEST(copy_book, a_copy_that_begins_above_the_oldest_version_does_not_count) {
  copy_book book;
  book.on_logged({9});
  auto said = standing_at(9);
  said.restorable = {{{0}, {0}}, {{4}, {9}}};
  book.on_standing(said, store_up_to(9), begun);
  EXPECT_EQ(book.counted(), incarnation{});
}

TEST(copy_book, when_its_keeper_is_over_all_that_waited_is_told) {
  copy_book book;
  book.on_logged({1});
  book.on_standing(standing_at(1), store_up_to(1), begun);
  book.on_logged({3});
  book.on_snapshot({0}, {2});
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
  book.on_standing(standing_at(4), store_up_to(5), begun);
  EXPECT_FALSE(book.holds_all(store_up_to(5)));
  EXPECT_EQ(book.on_logged({6}).committed, std::nullopt);
  book.on_standing(standing_at(5), store_up_to(6), begun);
  EXPECT_TRUE(book.holds_all(store_up_to(6)));
}

TEST(copy_book, of_a_timeline_that_was_left_the_copy_counts_up_to_the_branch) {
  copy_book book;
  book.on_logged({8});
  book.on_standing(standing_at(8), store_up_to(8), begun);
  const protocol::history history{{{0}, {0}}, {{1}, {5}}};
  book.restart(history, {5});
  EXPECT_EQ(book.on_logged({6}).committed, std::nullopt);
  own_store mine{history, {{{0}, {6}}}, {{{0}, {6}}}, {}, {}};
  EXPECT_EQ(book.on_standing(standing_at(8), mine, begun).committed, std::nullopt);
  auto there = standing_at(6);
  there.timeline = {1};
  EXPECT_EQ(book.on_standing(there, mine, begun).committed, version_id{6});
}

// ---- without a log

own_store store_of(std::vector<version_id> snapshots, protocol::history history = protocol::first_history()) {
  own_store mine{std::move(history), {{{0}, {0}}}, {}, std::move(snapshots), {}};
  for (const auto one : mine.snapshots) protocol::insert(mine.restorable, {one, one});
  return mine;
}

protocol::copy_standing copy_of(const std::vector<version_id>& snapshots) {
  protocol::copy_standing said;
  said.incarnation = keeper;
  said.restorable = store_of(snapshots).restorable;
  said.end = said.restorable.back().last;
  said.snapshots = snapshots;
  return said;
}

class copy_book_of_snapshots : public testing::Test {
protected:
  std::vector<version_id> hear(const std::vector<version_id>& copied, const own_store& mine) {
    return book.on_standing(copy_of(copied), mine, begun).snapshots;
  }

  copy_book book{protocol::durability::snapshots};
};

TEST_F(copy_book_of_snapshots, without_a_copy_a_snapshot_is_told_at_once) {
  const auto told = book.on_snapshot({0}, {4});
  EXPECT_THAT(told.snapshots, ElementsAre(version_id{4}));
  EXPECT_EQ(told.committed, std::nullopt) << "there is no log";
  EXPECT_FALSE(book.is_log_awaited());
}

TEST_F(copy_book_of_snapshots, one_is_told_when_the_copy_that_counts_has_it_too) {
  hear({}, store_of({}));
  ASSERT_EQ(book.counted(), keeper) << "there is nothing yet that it lacks";
  EXPECT_THAT(book.on_snapshot({0}, {4}).snapshots, IsEmpty());
  EXPECT_TRUE(book.is_snapshot_awaited());
  EXPECT_FALSE(book.is_log_awaited());
  EXPECT_THAT(hear({{4}}, store_of({{4}})), ElementsAre(version_id{4}));
}

TEST_F(copy_book_of_snapshots, they_are_told_in_their_order) {
  hear({}, store_of({}));
  book.on_snapshot({0}, {4});
  book.on_snapshot({0}, {8});
  EXPECT_THAT(hear({{8}}, store_of({{4}, {8}})), IsEmpty());
  EXPECT_THAT(hear({{4}, {8}}, store_of({{4}, {8}})), ElementsAre(version_id{4}, version_id{8}));
}

TEST_F(copy_book_of_snapshots, a_copy_counts_when_it_has_all_that_were_told_not_the_newest_alone) {
  book.on_snapshot({0}, {4});
  book.on_snapshot({0}, {8});
  hear({{8}}, store_of({{4}, {8}}));
  EXPECT_EQ(book.counted(), incarnation{});
  hear({{4}, {8}}, store_of({{4}, {8}}));
  EXPECT_EQ(book.counted(), keeper);
}

TEST_F(copy_book_of_snapshots, one_of_a_timeline_that_was_left_is_none_of_the_next) {
  hear({}, store_of({}));
  book.on_snapshot({0}, {4});
  hear({{4}}, store_of({{4}}));
  const protocol::history history{{{0}, {0}}, {{1}, {4}}};
  book.restart(history, {4});
  book.on_snapshot({1}, {8});
  EXPECT_THAT(hear({{4}, {8}}, store_of({{4}, {8}}, history)), IsEmpty()) << "that is the other 8";
  auto there = copy_of({{4}, {8}});
  there.timeline = {1};
  EXPECT_THAT(book.on_standing(there, store_of({{4}, {8}}, history), begun).snapshots,
              ElementsAre(version_id{8}));
}

/// R16: its thread may have written it, and be heard after all went back.
TEST_F(copy_book_of_snapshots, one_that_ends_after_its_timeline_was_left_is_none) {
  book.restart({{{0}, {0}}, {{1}, {4}}}, {4});
  EXPECT_THAT(book.on_snapshot({0}, {8}).snapshots, IsEmpty());
  EXPECT_THAT(book.on_snapshot({1}, {8}).snapshots, ElementsAre(version_id{8}));
}

/// R36: beside what its store leads to memory may have retained a version.
TEST_F(copy_book_of_snapshots, a_start_begins_with_a_copy_of_what_its_store_has) {
  book.restart(protocol::first_history(), {8});
  book.begin_with(keeper);
  hear({{4}}, store_of({{4}, {8}}));
  EXPECT_FALSE(book.holds_all(store_of({{4}, {8}})));
  hear({{4}, {8}}, store_of({{4}, {8}}));
  EXPECT_TRUE(book.holds_all(store_of({{4}, {8}})));
}

TEST_F(copy_book_of_snapshots, when_its_keeper_is_over_all_that_waited_are_told) {
  hear({}, store_of({}));
  book.on_snapshot({0}, {4});
  book.on_snapshot({0}, {8});
  EXPECT_THAT(book.on_keeper({8}).snapshots, ElementsAre(version_id{4}, version_id{8}));
}

} // namespace
} // namespace dlrun::ps_shard
