#include "actors/data_dispatcher/course_journal.hpp"

#include "actors/coordinator/coordinator_journal.hpp"
#include "tests/actors/journal_writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::job_outcome;
using test::written;
using testing::HasSubstr;

protocol::evaluated result_of(std::uint64_t version, std::uint64_t timeline) {
  protocol::evaluated result;
  result.timeline = {timeline};
  result.version = {version};
  result.loss_sum_bits = 0x7ff8000000000001; // a NaN keeps its bits
  result.records = 50;
  result.metric_bits = {40, 0x7ff8000000000001};
  return result;
}

journaled_course full_course() {
  journaled_course course;
  course.history = {{{0}, {0}, 0, {}}, {{1}, {5}, 0, {{{5}, {1}}}}, {{4}, {3}, 2, {{{3}, {0}}, {{9}, {7}}}}};
  course.parked = {{{3}, {0}}, {{5}, {1}}, {{9}, {7}}, {{11}, {2}}};
  course.evaluations = {result_of(8, 1), result_of(20, 4)};
  return course;
}

/// What is said of a course that must not be used.
std::string refusal(const test::journal_entries& entries) {
  const auto course = read_course(entries);
  if (course) return "";
  EXPECT_EQ(course.error().code, error_code::storage_damaged);
  return course.error().message;
}

TEST(course_journal, an_empty_one_is_that_of_a_new_job) {
  const auto course = read_course({});
  ASSERT_TRUE(course) << course.error().message;
  EXPECT_EQ(*course, journaled_course{});
  EXPECT_EQ(course->history, protocol::first_history());
}

TEST(course_journal, a_course_comes_back_as_it_was_written) {
  const auto course = full_course();
  const auto read = read_course(written(to_writes(course)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, course);
}

TEST(course_journal, a_course_is_replaced_as_a_whole) {
  const auto entries = written(to_writes(journaled_course{}), written(to_writes(full_course())));
  EXPECT_EQ(read_course(entries), journaled_course{});
}

TEST(course_journal, as_much_as_a_history_may_hold_comes_back) {
  journaled_course course;
  for (std::uint64_t timeline = 1; course.history.size() < protocol::history_entries_max; ++timeline)
    course.history.push_back({{timeline}, {timeline}, 0, {}});
  for (std::uint32_t slot = 0; slot < protocol::parked_slots_max; ++slot)
    course.history.back().parked.push_back({{1000}, {slot}});
  EXPECT_EQ(read_course(written(to_writes(course)))->history, course.history);
  course.history.push_back({{5000}, {5000}, 0, {}});
  EXPECT_THAT(refusal(written(to_writes(course))), HasSubstr("'course'"));
}

/// The coordinator writes the end; a dispatcher that is started after it must not go back any more.
TEST(course_journal, has_ended_when_the_coordinator_journaled_that_the_job_is_completed) {
  const auto with_end = [](job_outcome outcome) {
    const auto end = coordinator::to_writes(coordinator::journal_end{{outcome, "a reason"}});
    return read_course(written(end, written(to_writes(full_course()))));
  };
  ASSERT_TRUE(with_end(job_outcome::completed));
  EXPECT_TRUE(with_end(job_outcome::completed)->ended);
  EXPECT_EQ(with_end(job_outcome::completed)->history, full_course().history);
  EXPECT_FALSE(with_end(job_outcome::interrupted)->ended) << "it is being resumed";
  EXPECT_FALSE(with_end(job_outcome::failed)->ended);
}

TEST(course_journal, has_ended_also_where_no_course_was_ever_written) {
  const auto end = coordinator::to_writes(coordinator::journal_end{{job_outcome::completed, ""}});
  EXPECT_TRUE(read_course(written(end))->ended);
}

TEST(course_journal, the_end_is_not_the_dispatchers_to_write) {
  auto course = full_course();
  course.ended = true;
  EXPECT_FALSE(read_course(written(to_writes(course)))->ended);
}

TEST(course_journal, what_cannot_be_read_is_refused_naming_the_entry_and_the_way_out) {
  for (const auto* key : {"outcome", "course"}) {
    const auto said = refusal({{key, "\xff\xff\xff"}});
    EXPECT_THAT(said, HasSubstr(fmt::format("the entry '{}' of the journal cannot be read", key)));
    EXPECT_THAT(said, HasSubstr("restore the run folder from a copy"));
  }
}

TEST(course_journal, a_history_that_cannot_be_is_refused) {
  const auto refused = [](protocol::history history) {
    journaled_course course;
    course.history = std::move(history);
    return !refusal(written(to_writes(course))).empty();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{{1}, {0}, 0, {}}})) << "without the first timeline";
  EXPECT_TRUE(refused({{{0}, {0}, 0, {}}, {{2}, {5}, 0, {}}, {{1}, {3}, 0, {}}})) << "out of order";
  EXPECT_TRUE(refused({{{0}, {0}, 0, {}}, {{1}, {5}, 0, {}}, {{1}, {3}, 0, {}}})) << "twice";
}

} // namespace
} // namespace dlrun::data_dispatcher
