#include "actors/coordinator/progress_book.hpp"

#include "tests/actors/journal_writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::written;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr protocol::time_point start{seconds(100)};

/// Of four records a step.
protocol::shard_status status(std::uint32_t index, std::uint64_t applied) {
  protocol::shard_status made;
  made.shard = {index};
  made.applied = {applied};
  made.ledger = {.steps_redone = 1, .samples_applied = 4 * applied, .samples_missing = 2};
  return made;
}

protocol::shard_status with_metrics(protocol::shard_status of) {
  of.has_metrics = true;
  of.metrics = {.loss_sum_bits = 17, .records = 8, .sum_bits = {19, 23}};
  return of;
}

TEST(progress_book, a_later_start_knows_how_far_each_ps_shard_was) {
  progress_book first;
  first.hear(with_metrics(status(0, 12)));
  first.hear(status(1, 11));
  const progress_book second{written(first.changes(std::nullopt))};
  const auto known = second.all();
  ASSERT_THAT(known, SizeIs(2));
  EXPECT_EQ(known[0].shard, ps_shard_id{0});
  EXPECT_EQ(known[0].applied, version_id{12});
  EXPECT_EQ(known[0].ledger, status(0, 12).ledger);
  EXPECT_TRUE(known[0].has_metrics);
  EXPECT_EQ(known[0].metrics, with_metrics(status(0, 12)).metrics);
  EXPECT_EQ(known[1].shard, ps_shard_id{1});
  EXPECT_EQ(known[1].applied, version_id{11});
  EXPECT_FALSE(known[1].has_metrics);
}

TEST(progress_book, the_newest_word_of_a_ps_shard_counts_and_the_others_stay_known) {
  progress_book first;
  first.hear(status(0, 12));
  first.hear(status(1, 11));
  progress_book second{written(first.changes(std::nullopt))};
  second.hear(status(1, 9)); // it went back
  const auto known = second.all();
  ASSERT_THAT(known, SizeIs(2));
  EXPECT_EQ(known[0].applied, version_id{12});
  EXPECT_EQ(known[1].applied, version_id{9});
}

TEST(progress_book, is_written_every_second_and_at_the_end_at_once) {
  progress_book book;
  book.hear(status(0, 1));
  EXPECT_THAT(book.changes(start), SizeIs(1));
  book.hear(status(0, 2));
  EXPECT_THAT(book.changes(start + milliseconds(900)), IsEmpty());
  EXPECT_THAT(book.changes(std::nullopt), SizeIs(1));
  EXPECT_THAT(book.changes(start + milliseconds(1000)), IsEmpty()) << "nothing is new";
}

TEST(progress_book, what_cannot_be_read_is_left_out) {
  progress_book book;
  book.hear(status(0, 3));
  auto entries = written(book.changes(std::nullopt));
  entries["progress/000001"] = "\xff";
  entries["progress/"] = "";
  entries["progress/x"] = "";
  const progress_book next{entries};
  ASSERT_THAT(next.all(), SizeIs(1));
  EXPECT_EQ(next.all()[0].applied, version_id{3});
}

} // namespace
} // namespace dlrun::coordinator
