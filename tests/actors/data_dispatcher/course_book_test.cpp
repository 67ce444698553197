#include "actors/data_dispatcher/course_book.hpp"

#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using testing::SizeIs;

const protocol::timeline_started started{{1}, {3}, 2, "a gradient is lost", false};

TEST(course_book, the_course_is_what_it_was_until_the_change_is_journaled) {
  course_book book{{}};
  auto changed = book.course();
  changed.history = extended(changed.history, next_entry(changed.history, {3}));
  data_dispatcher_actions out;
  book.write(changed, started, out);
  const auto orders = only<journal_course>(out);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].course, changed);
  EXPECT_TRUE(book.is_writing());
  EXPECT_EQ(book.timeline(), timeline_id{0});
  EXPECT_FALSE(book.on_journaled(orders[0].id + 1)) << "of another dispatcher";
  const auto done = book.on_journaled(orders[0].id);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->before, journaled_course{});
  EXPECT_EQ(done->start, started);
  EXPECT_EQ(book.timeline(), timeline_id{1});
  EXPECT_FALSE(book.is_writing());
  EXPECT_FALSE(book.on_journaled(orders[0].id)) << "told again";
}

TEST(course_book, each_write_has_a_number_of_its_own) {
  course_book book{{}};
  data_dispatcher_actions out;
  book.write({}, std::nullopt, out);
  book.on_journaled(only<journal_course>(out).at(0).id);
  book.write({}, std::nullopt, out);
  EXPECT_NE(only<journal_course>(out).at(0).id, only<journal_course>(out).at(1).id);
}

TEST(course_book, the_next_timeline_keeps_the_revision) {
  const auto history = extended(protocol::first_history(), {{4}, {2}, 3, {}});
  const auto entry = next_entry(history, {1});
  EXPECT_EQ(entry.timeline, timeline_id{5});
  EXPECT_EQ(entry.branch, version_id{1});
  EXPECT_EQ(entry.revision, 3U);
}

} // namespace
} // namespace dlrun::data_dispatcher
