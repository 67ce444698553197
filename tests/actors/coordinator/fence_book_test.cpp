#include "actors/coordinator/fence_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using testing::IsEmpty;
using testing::SizeIs;

constexpr protocol::role_name worker{protocol::role_kind::worker, 0};
constexpr protocol::role_name shard{protocol::role_kind::ps_shard, 0};

class fence_book_test : public testing::Test {
protected:
  fence_book make(bool journals = true, std::uint64_t agent = 1) {
    return fence_book({journals, agent, [this] { return ++token; }}, {shard, worker});
  }
  /// Writes what is to be written.
  static std::vector<journaled_role> write(fence_book& book) {
    auto written = book.begin_write();
    book.end_write();
    return written;
  }

  std::uint64_t token = 1000;
  fence_book book = make();
};

TEST_F(fence_book_test, nothing_is_granted_before_it_is_in_the_journal) {
  EXPECT_FALSE(book.issue(worker, 3));
  EXPECT_THAT(book.granted(worker), IsEmpty());
  EXPECT_THAT(book.begin_write(), SizeIs(1));
  EXPECT_THAT(book.begin_write(), IsEmpty()) << "one write at a time";
  EXPECT_THAT(book.end_write(), SizeIs(1));
  EXPECT_THAT(book.granted(worker), SizeIs(3));
}

TEST_F(fence_book_test, without_a_journal_it_is_granted_at_once) {
  auto plain = make(false);
  EXPECT_TRUE(plain.issue(worker, 2));
  EXPECT_FALSE(plain.issue(worker, 2)) << "they are there";
  EXPECT_THAT(plain.granted(worker), SizeIs(2));
  EXPECT_THAT(plain.begin_write(), IsEmpty());
}

TEST_F(fence_book_test, what_is_issued_during_a_write_goes_with_the_next) {
  book.issue(worker, 1);
  book.begin_write();
  book.issue(worker, 3);
  book.end_write();
  EXPECT_THAT(book.granted(worker), SizeIs(1));
  EXPECT_THAT(write(book), SizeIs(1));
  EXPECT_THAT(book.granted(worker), SizeIs(3));
}

TEST_F(fence_book_test, a_start_uses_up_its_fence_and_the_older_ones) {
  book.issue(worker, 3);
  write(book);
  const auto second = book.granted(worker)[1];
  book.use(worker, second);
  EXPECT_THAT(book.granted(worker), SizeIs(1));
  EXPECT_GT(book.granted(worker)[0].incarnation, second.incarnation);
}

TEST_F(fence_book_test, the_next_coordinator_knows_fences_and_tokens_and_never_issues_one_twice) {
  book.issue(worker, 2);
  write(book);
  const auto running = book.granted(worker)[0];
  const auto spare = book.granted(worker)[1];
  book.use(worker, running);
  book.issue(worker, 2);
  auto next = make();
  for (const auto& kept : write(book)) next.restore(kept);
  EXPECT_TRUE(next.is_issued(worker, running, {})) << "it still runs";
  EXPECT_TRUE(next.is_issued(worker, spare, {}));
  EXPECT_FALSE(next.is_issued(worker, {running.incarnation, 5}, {})) << "a guessed token";
  next.issue(worker, 9);
  write(next);
  EXPECT_THAT(next.granted(worker), SizeIs(9));
  for (std::size_t i = 1; i < 9; ++i)
    EXPECT_LT(next.granted(worker)[i - 1].incarnation, next.granted(worker)[i].incarnation);
}

TEST_F(fence_book_test, another_agent_gets_none_that_an_older_one_may_have_used) {
  book.issue(worker, 2);
  const auto written = write(book);
  auto resumed = make(true, 2);
  for (const auto& kept : written) resumed.restore(kept);
  EXPECT_THAT(resumed.granted(worker), IsEmpty());
  resumed.issue(worker, 1);
  write(resumed);
  EXPECT_EQ(resumed.granted(worker)[0].incarnation, incarnation{3});
}

TEST_F(fence_book_test, without_its_journal_it_begins_far_beyond_and_believes_what_is_newer) {
  book.begin_anew({7});
  EXPECT_TRUE(book.is_issued(worker, {{9}, 1234}, {5}));
  EXPECT_FALSE(book.is_issued(worker, {{5}, 1234}, {5}));
  EXPECT_FALSE(book.is_issued(worker, {{std::uint64_t{1} << 40}, 1234}, {5}));
  book.issue(worker, 1);
  const auto written = write(book);
  EXPECT_THAT(written, SizeIs(2)) << "every role, once";
  EXPECT_GT(book.granted(worker)[0].incarnation.value, std::uint64_t{1} << 32);
  auto next = make();
  for (const auto& kept : written) next.restore(kept);
  EXPECT_TRUE(next.is_issued(shard, {{9}, 1234}, {5})) << "what runs may come to the next coordinator";
}

TEST_F(fence_book_test, what_an_agent_was_granted_starts_nothing_for_the_next_but_may_run) {
  book.issue(worker, 2);
  write(book);
  const auto granted = book.granted(worker);
  book.issue(worker, 3);
  book.begin_write();
  book.serve(2);
  EXPECT_THAT(book.end_write(), IsEmpty()) << "of the agent before";
  EXPECT_THAT(book.granted(worker), IsEmpty());
  EXPECT_FALSE(book.is_issued(worker, granted.at(0), {0}));
  EXPECT_TRUE(book.was_issued(worker, granted.at(0), {0}));
  EXPECT_FALSE(book.was_issued(worker, granted.at(0), granted.at(0).incarnation)) << "it is not newer";
  EXPECT_FALSE(book.was_issued(worker, {granted.at(0).incarnation, 1}, {0})) << "another token";
  book.issue(worker, 1);
  const auto written = write(book);
  ASSERT_THAT(written, SizeIs(1));
  EXPECT_EQ(written.at(0).agent, 2U);
  EXPECT_GT(book.granted(worker).at(0).incarnation, granted.at(1).incarnation);
}

TEST_F(fence_book_test, the_coordinator_of_another_agent_knows_from_its_journal_what_may_run) {
  book.issue(worker, 2);
  const auto written = write(book);
  const auto granted = book.granted(worker);
  auto next = make(true, 2);
  next.restore(written.at(0));
  EXPECT_FALSE(next.is_issued(worker, granted.at(1), {0}));
  EXPECT_TRUE(next.was_issued(worker, granted.at(1), {0}));
  next.issue(worker, 1);
  const auto again = write(next).at(0);
  auto third = make(true, 2);
  third.restore(again);
  EXPECT_TRUE(third.was_issued(worker, granted.at(1), {0})) << "nobody has said yet that it does not run";
  EXPECT_FALSE(third.is_issued(worker, granted.at(1), {0}));
  third.use(worker, granted.at(1));
  EXPECT_FALSE(third.was_issued(worker, granted.at(0), {0})) << "a newer one runs";
}

} // namespace
} // namespace dlrun::coordinator
