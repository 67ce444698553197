/// The checker of histories: which it takes, and which it does not.
#include "tests/persistence/journal_history.hpp"

#include <gtest/gtest.h>

namespace dlrun::test {
namespace {

using answer = journal_call::answer;
using kind = journal_call::kind;
using entries = std::map<std::string, std::string>;

journal_call take(std::uint64_t term, std::uint64_t begun, std::uint64_t ended, entries found = {}) {
  return {kind::take, term, {}, answer::done, std::move(found), begun, ended};
}
journal_call write(std::uint64_t term, const std::string& value, std::uint64_t begun, std::uint64_t ended) {
  return {kind::write, term, {{"a", value}}, answer::done, {}, begun, ended};
}
journal_call read(std::uint64_t term, std::uint64_t begun, std::uint64_t ended, entries found) {
  return {kind::read, term, {}, answer::done, std::move(found), begun, ended};
}
journal_call refused(journal_call call) {
  call.told = answer::refused;
  call.entries.clear();
  return call;
}
journal_call unanswered(journal_call call) {
  call.told = answer::unknown;
  call.entries.clear();
  call.ended = journal_call::never;
  return call;
}

TEST(journal_history, of_one_after_the_other_is_explained) {
  EXPECT_EQ(unexplained_call({}), std::nullopt);
  EXPECT_EQ(
      unexplained_call({take(1, 1, 2), write(1, "x", 3, 4), read(1, 5, 6, {{"a", "x"}}),
                        take(2, 7, 8, {{"a", "x"}}), refused(write(1, "y", 9, 10)), refused(take(1, 11, 12)),
                        write(2, "z", 13, 14), read(2, 15, 16, {{"a", "z"}})}),
      std::nullopt);
}

TEST(journal_history, that_overlaps_is_explained_by_any_order_that_keeps_to_its_times) {
  const journal_history overlapping{take(1, 1, 2), write(1, "x", 3, 8), read(1, 4, 5, {{"a", "x"}})};
  EXPECT_EQ(unexplained_call(overlapping), std::nullopt);
  EXPECT_EQ(unexplained_call({take(1, 1, 2), write(1, "x", 3, 8), read(1, 4, 5, {})}), std::nullopt);
}

TEST(journal_history, with_an_old_value_after_the_new_one_is_not) {
  EXPECT_NE(unexplained_call({take(1, 1, 2), write(1, "x", 3, 4), read(1, 5, 6, {})}), std::nullopt);
  const auto found =
      unexplained_call({take(1, 1, 2), write(1, "x", 3, 8), read(1, 4, 5, {{"a", "x"}}), read(1, 6, 7, {})});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "read of term 1, done, from 6 to 7: ");
}

TEST(journal_history, with_a_write_of_an_owner_that_was_deposed_is_not) {
  EXPECT_NE(unexplained_call({take(1, 1, 2), take(2, 3, 4), write(1, "x", 5, 6)}), std::nullopt);
  EXPECT_EQ(unexplained_call({take(1, 1, 2), take(2, 3, 6, {{"a", "x"}}), write(1, "x", 4, 5)}), std::nullopt)
      << "it may have been done first";
}

TEST(journal_history, with_a_write_that_is_lost_is_not) {
  EXPECT_NE(unexplained_call({take(1, 1, 2), write(1, "x", 3, 4), take(2, 5, 6)}), std::nullopt);
}

TEST(journal_history, with_one_term_that_two_have_is_not) {
  EXPECT_NE(unexplained_call({take(1, 1, 2), take(1, 3, 4)}), std::nullopt);
  EXPECT_NE(unexplained_call({take(2, 1, 2), take(1, 3, 4)}), std::nullopt);
}

TEST(journal_history, with_a_refusal_that_had_no_reason_is_not) {
  EXPECT_NE(unexplained_call({take(1, 1, 2), refused(write(1, "x", 3, 4))}), std::nullopt);
  EXPECT_NE(unexplained_call({take(1, 1, 2), refused(take(2, 3, 4))}), std::nullopt);
}

TEST(journal_history, takes_a_refusal_of_what_had_been_done_and_was_overtaken) {
  const journal_history late{take(1, 1, 2), refused(write(1, "x", 3, 10)), take(2, 4, 5, {{"a", "x"}})};
  EXPECT_EQ(unexplained_call(late), std::nullopt);
  EXPECT_EQ(
      unexplained_call({take(1, 1, 2), refused(take(2, 3, 8)), refused(write(1, "x", 4, 5)), take(3, 6, 7)}),
      std::nullopt);
  EXPECT_NE(unexplained_call({take(1, 1, 2), refused(write(1, "x", 3, 4)), take(2, 5, 6, {{"a", "x"}})}),
            std::nullopt)
      << "nobody had overtaken it";
}

TEST(journal_history, takes_what_was_not_answered_for_done_at_any_time_since_or_never) {
  const auto unknown = unanswered(write(1, "x", 3, 0));
  EXPECT_EQ(unexplained_call({take(1, 1, 2), unknown, read(1, 4, 5, {})}), std::nullopt);
  EXPECT_EQ(unexplained_call({take(1, 1, 2), unknown, read(1, 4, 5, {}), read(1, 6, 7, {{"a", "x"}})}),
            std::nullopt);
  EXPECT_NE(unexplained_call({take(1, 1, 2), unknown, read(1, 4, 5, {{"a", "x"}}), read(1, 6, 7, {})}),
            std::nullopt)
      << "it is not undone";
  EXPECT_NE(unexplained_call({take(1, 1, 2), unknown, take(2, 4, 5), read(2, 6, 7, {{"a", "x"}})}),
            std::nullopt)
      << "nor done behind the next owner's back";
  EXPECT_NE(unexplained_call({take(1, 1, 2), read(1, 3, 4, {{"a", "x"}}), unanswered(write(1, "x", 5, 0))}),
            std::nullopt)
      << "nor before it was asked for";
}

TEST(journal_history, with_a_write_that_is_done_twice_is_not) {
  const auto unknown = unanswered(write(1, "x", 3, 0));
  EXPECT_NE(unexplained_call({take(1, 1, 2), unknown, read(1, 4, 5, {{"a", "x"}}), write(1, "y", 6, 7),
                              read(1, 8, 9, {{"a", "x"}})}),
            std::nullopt);
}

TEST(journal_history, with_half_of_a_write_is_not) {
  auto both = write(1, "x", 3, 4);
  both.changes.push_back({"b", "x"});
  EXPECT_EQ(unexplained_call({take(1, 1, 2), both, read(1, 5, 6, {{"a", "x"}, {"b", "x"}})}), std::nullopt);
  EXPECT_NE(unexplained_call({take(1, 1, 2), both, read(1, 5, 6, {{"a", "x"}})}), std::nullopt);
}

} // namespace
} // namespace dlrun::test
