#include "actors/data_dispatcher/course_journal.hpp"

#include "actors/coordinator/coordinator_journal.hpp"
#include "proto/journal_records.pb.h"
#include "tests/actors/journal_writes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::job_outcome;
using test::written;
using testing::ElementsAre;
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
  const auto read = read_course(written(course_writer{}.to_writes(course)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, course);
}

TEST(course_journal, a_course_is_replaced_as_a_whole) {
  const auto entries = written(course_writer{}.to_writes(journaled_course{}),
                               written(course_writer{}.to_writes(full_course())));
  EXPECT_EQ(read_course(entries), journaled_course{});
}

std::vector<std::string> keys_of(const std::vector<persistence::journal_write>& writes) {
  std::vector<std::string> keys;
  for (const auto& one : writes) keys.push_back(one.key);
  return keys;
}

std::size_t bytes_of(const std::vector<persistence::journal_write>& writes) {
  std::size_t bytes = 0;
  for (const auto& one : writes) bytes += one.key.size() + one.value.value_or("").size();
  return bytes;
}

/// The course, how a writer writes it, and the journal.
struct written_course {
  journaled_course course;
  course_writer writer;
  test::journal_entries entries;

  std::vector<persistence::journal_write> write() {
    auto writes = writer.to_writes(course);
    entries = written(writes, std::move(entries));
    EXPECT_EQ(read_course(entries), course);
    return writes;
  }
  void evaluate(std::uint64_t versions) {
    for (std::uint64_t i = 0; i < versions; ++i)
      course.evaluations.push_back(result_of(course.evaluations.size(), 0));
  }
};

TEST(course_journal, one_more_result_is_a_small_write_however_many_there_are) {
  written_course one;
  one.evaluate(10100);
  EXPECT_LT(one.write().size(), 100U) << "etcd takes 128 in a transaction";
  one.evaluate(1);
  EXPECT_THAT(keys_of(one.write()), ElementsAre("evaluations/000078", "course"));
  for (int i = 0; i < 20; ++i) { // beyond the end of an entry
    one.evaluate(1);
    EXPECT_LT(bytes_of(one.write()), 10000U);
  }
}

TEST(course_journal, a_result_may_come_after_that_of_a_later_version) {
  written_course one;
  one.evaluate(128);
  one.course.evaluations.erase(one.course.evaluations.begin() + 126);
  one.write();
  one.course.evaluations.insert(one.course.evaluations.begin() + 126, result_of(126, 0));
  one.write();
}

TEST(course_journal, results_that_are_void_come_back_under_no_circumstances) {
  written_course one;
  one.evaluate(300);
  one.write();
  one.course.evaluations.resize(150); // a rewind
  EXPECT_THAT(keys_of(one.write()), ElementsAre("course"));
  one.course.evaluations.push_back(result_of(150, 1));
  one.write();
  one.course.evaluations.clear();
  one.write();
  one.evaluate(1);
  one.write();
}

TEST(course_journal, another_writer_goes_on_from_what_is_there) {
  written_course one;
  one.evaluate(200);
  one.write();
  one.writer = course_writer{one.entries};
  one.course = read_course(one.entries).value();
  one.evaluate(1);
  EXPECT_THAT(keys_of(one.write()), ElementsAre("evaluations/000001", "course"));
}

TEST(course_journal, results_of_a_journal_of_format_1_are_read_and_moved_into_entries_of_their_own) {
  written_course one;
  one.evaluate(200);
  records::JournalCourse message;
  ASSERT_TRUE(message.ParseFromString(*course_writer{}.to_writes(one.course).back().value));
  message.clear_evaluations_apart();
  for (const auto& result : one.course.evaluations) {
    auto& stored = *message.add_evaluations();
    stored.set_version(result.version.value);
    stored.set_loss_sum_bits(result.loss_sum_bits);
    stored.set_records(result.records);
    for (const auto bits : result.metric_bits) stored.add_metric_bits(bits);
  }
  one.entries = {{"course", message.SerializeAsString()}};
  EXPECT_EQ(read_course(one.entries), one.course);
  EXPECT_EQ(coordinator::read_evaluations(one.entries), one.course.evaluations);
  one.writer = course_writer{one.entries};
  one.evaluate(1);
  EXPECT_THAT(keys_of(one.write()), ElementsAre("evaluations/000000", "evaluations/000001", "course"));
  EXPECT_EQ(coordinator::read_evaluations(one.entries), one.course.evaluations);
}

TEST(course_journal, results_that_are_not_there_or_cannot_be_read_are_refused) {
  written_course one;
  one.evaluate(200);
  one.write();
  for (const auto& value : {std::optional<std::string>{}, std::optional<std::string>{"\xff\xff\xff"},
                            std::optional<std::string>{""}}) {
    const auto entries = written({{"evaluations/000001", value}}, one.entries);
    EXPECT_THAT(refusal(entries), HasSubstr("'course'"));
    EXPECT_FALSE(coordinator::read_job(entries));
  }
}

TEST(course_journal, as_much_as_a_history_may_hold_comes_back) {
  journaled_course course;
  for (std::uint64_t timeline = 1; course.history.size() < protocol::history_entries_max; ++timeline)
    course.history.push_back({{timeline}, {timeline}, 0, {}});
  for (std::uint32_t slot = 0; slot < protocol::parked_slots_max; ++slot)
    course.history.back().parked.push_back({{1000}, {slot}});
  EXPECT_EQ(read_course(written(course_writer{}.to_writes(course)))->history, course.history);
  course.history.push_back({{5000}, {5000}, 0, {}});
  EXPECT_THAT(refusal(written(course_writer{}.to_writes(course))), HasSubstr("'course'"));
}

/// The coordinator writes the end; a dispatcher that is started after it must not go back any more.
TEST(course_journal, has_ended_when_the_coordinator_journaled_that_the_job_is_completed) {
  const auto with_end = [](job_outcome outcome) {
    const auto end = coordinator::to_writes(coordinator::journal_end{{outcome, "a reason"}});
    return read_course(written(end, written(course_writer{}.to_writes(full_course()))));
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
  EXPECT_FALSE(read_course(written(course_writer{}.to_writes(course)))->ended);
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
    return !refusal(written(course_writer{}.to_writes(course))).empty();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{{1}, {0}, 0, {}}})) << "without the first timeline";
  EXPECT_TRUE(refused({{{0}, {0}, 0, {}}, {{2}, {5}, 0, {}}, {{1}, {3}, 0, {}}})) << "out of order";
  EXPECT_TRUE(refused({{{0}, {0}, 0, {}}, {{1}, {5}, 0, {}}, {{1}, {3}, 0, {}}})) << "twice";
}

} // namespace
} // namespace dlrun::data_dispatcher
