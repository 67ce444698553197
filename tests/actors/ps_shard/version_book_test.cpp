#include "actors/ps_shard/version_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using protocol::version_set;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr incarnation dispatcher{3};

/// Of a shard that has logged up to version 12, with snapshots of 4 and 8.
class version_book_test : public testing::Test {
protected:
  version_book_test() { book.restart({{{0}, {0}}, {{4}, {12}}}, {{4}, {8}}); }
  version_book book{{{6}, {20}}};
};

TEST_F(version_book_test, version_0_is_always_there) {
  book.restart({}, {});
  EXPECT_TRUE(book.can_restore({0}));
  EXPECT_FALSE(book.can_restore({1}));
}

TEST_F(version_book_test, what_is_committed_can_be_restored) {
  book.committed({12}, {14});
  EXPECT_EQ(book.restorable(), (version_set{{{0}, {0}}, {{4}, {14}}}));
}

TEST_F(version_book_test, a_version_is_snapshotted_when_it_is_named_or_asked_for_and_only_once) {
  EXPECT_TRUE(book.is_wanted({6}));
  EXPECT_FALSE(book.is_wanted({13}));
  book.ask_for({13});
  EXPECT_TRUE(book.is_wanted({13}));
  EXPECT_THAT(book.planned({12}), ElementsAre(version_id{13}));
  book.begin({13});
  EXPECT_FALSE(book.is_wanted({13}));
  EXPECT_THAT(book.planned({13}), ElementsAre(version_id{13})) << "it is in work";
  book.snapshot_durable({13});
  EXPECT_THAT(book.planned({13}), IsEmpty());
  EXPECT_THAT(book.snapshots(), ElementsAre(version_id{4}, version_id{8}, version_id{13}));
}

TEST_F(version_book_test, a_named_one_that_is_missing_is_made_from_the_log_or_from_memory) {
  EXPECT_THAT(book.missing({12}, std::nullopt), ElementsAre(version_id{6}));
  EXPECT_THAT(book.missing({5}, std::nullopt), IsEmpty());
  book.restart({{{8}, {20}}}, {{8}});
  EXPECT_THAT(book.missing({20}, std::nullopt), ElementsAre(version_id{20}));
  book.restart({{{8}, {8}}}, {{8}}); // nothing is logged
  EXPECT_THAT(book.missing({20}, version_id{20}), ElementsAre(version_id{20}));
}

TEST_F(version_book_test, one_that_failed_is_wanted_again) {
  book.begin({6});
  EXPECT_EQ(book.in_work(), 1U);
  book.failed({6});
  EXPECT_EQ(book.in_work(), 0U);
  EXPECT_TRUE(book.is_wanted({6}));
}

TEST_F(version_book_test, of_many_that_are_asked_for_the_lowest_count) {
  for (std::uint64_t version = 30; version > 20; --version) book.ask_for({version});
  EXPECT_THAT(book.planned({12}),
              ElementsAre(version_id{21}, version_id{22}, version_id{23}, version_id{24}));
}

TEST_F(version_book_test, what_is_dropped_leaves_a_snapshot_to_begin_from) {
  EXPECT_EQ(book.droppable({9}, dispatcher), version_id{8});
  book.dropped_below({8});
  EXPECT_EQ(book.restorable(), (version_set{{{0}, {0}}, {{8}, {12}}}));
  EXPECT_EQ(book.droppable({9}, dispatcher), std::nullopt) << "told again";
  EXPECT_EQ(book.droppable({3}, dispatcher), std::nullopt);
}

TEST_F(version_book_test, one_snapshot_below_the_floor_may_be_kept) {
  EXPECT_EQ(book.droppable({9}, dispatcher, version_id{4}), version_id{8}) << "the log between goes";
  book.dropped_below({8}, version_id{4});
  EXPECT_EQ(book.restorable(), (version_set{{{0}, {0}}, {{4}, {4}}, {{8}, {12}}}));
  EXPECT_THAT(book.snapshots(), ElementsAre(version_id{4}, version_id{8}));
  EXPECT_EQ(book.droppable({9}, dispatcher, version_id{4}), std::nullopt) << "told again";
  EXPECT_EQ(book.droppable({9}, dispatcher), version_id{8}) << "not the best any more";
  book.dropped_below({8});
  EXPECT_THAT(book.snapshots(), ElementsAre(version_id{8}));
}

TEST_F(version_book_test, what_has_no_snapshot_cannot_be_kept) {
  EXPECT_EQ(book.droppable({9}, dispatcher, version_id{6}), version_id{8});
  book.dropped_below({8}, version_id{6});
  EXPECT_EQ(book.restorable(), (version_set{{{0}, {0}}, {{8}, {12}}}));
}

TEST_F(version_book_test, a_pinned_version_stays_until_a_newer_dispatcher_speaks) {
  book.set_pin(dispatcher, {7});
  EXPECT_EQ(book.droppable({9}, dispatcher), std::nullopt) << "7 is made from the snapshot of 4";
  EXPECT_TRUE(book.pinned());
  book.set_pin({2}, {12});
  EXPECT_EQ(book.pinned()->version, version_id{7}) << "of an older dispatcher";
  EXPECT_EQ(book.droppable({9}, {4}), version_id{8});
  EXPECT_FALSE(book.pinned());
}

TEST_F(version_book_test, a_rewind_forgets_what_was_asked_pinned_and_in_work) {
  book.ask_for({13});
  book.begin({6});
  book.set_pin(dispatcher, {7});
  book.restart({{{4}, {5}}}, {{4}});
  EXPECT_THAT(book.planned({5}), IsEmpty());
  EXPECT_FALSE(book.pinned());
  EXPECT_EQ(book.in_work(), 0U);
}

} // namespace
} // namespace dlrun::ps_shard
