#include "actors/coordinator/coordinator_journal.hpp"

#include "actors/common/history_conversion.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/data_dispatcher/course_journal.hpp"
#include "job/run_layout.hpp"
#include "persistence/folder_journal.hpp"
#include "persistence/shard_store.hpp"
#include "proto/journal_records.pb.h"
#include "tests/actors/journal_writes.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::job_outcome;
using protocol::role_kind;
using test::written;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

journaled_role worker_3() {
  return {{role_kind::worker, 3}, {9}, {{{8}, 1ULL << 63}, {{9}, 77}}, 0xfedcba9876543210, {5}};
}

journaled_role coordinator_0() { return {{role_kind::coordinator, 0}, {4}, {{{4}, 1}}, 7, {}}; }

test::journal_entries ended(job_outcome outcome, const std::string& reason = "") {
  return written(to_writes(journal_end{{outcome, reason}}));
}

/// What is said of entries that must not be used.
std::string refusal(const test::journal_entries& entries) {
  const auto job = read_job(entries);
  if (job) return "";
  EXPECT_EQ(job.error().code, error_code::storage_damaged);
  return job.error().message;
}

TEST(coordinator_journal, an_empty_one_is_that_of_a_new_job) {
  const auto job = read_job({});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->roles, IsEmpty());
  EXPECT_FALSE(job->ended);
  EXPECT_THAT(job->evaluations, IsEmpty());
  EXPECT_FALSE(job->lost);
}

TEST(coordinator_journal, roles_come_back_as_they_were_written) {
  const auto entries = written(to_writes(journal_fences{1, {worker_3(), coordinator_0()}}));
  EXPECT_THAT(read_job(entries)->roles, UnorderedElementsAre(worker_3(), coordinator_0()));
}

TEST(coordinator_journal, of_each_role_the_latest_word_counts) {
  const auto before = written(to_writes(journal_fences{1, {worker_3(), coordinator_0()}}));
  auto later = worker_3();
  later.last_issued = {11};
  later.usable = {{{11}, 5}};
  const auto entries = written(to_writes(journal_fences{2, {later}}), before);
  EXPECT_THAT(read_job(entries)->roles, UnorderedElementsAre(later, coordinator_0()));
}

TEST(coordinator_journal, the_number_of_workers_comes_back_as_it_was_written) {
  const journaled_workers kept{4, 2, 0xfedcba9876543210, 7};
  EXPECT_EQ(read_job(written(to_writes(journal_workers{kept})))->workers, kept);
  EXPECT_FALSE(read_job({})->workers);
  EXPECT_THAT(refusal({{"workers", "\xff"}}), HasSubstr("workers"));
}

TEST(coordinator_journal, what_is_known_of_stores_comes_back_as_it_was_written) {
  const protocol::store_standing before{"alpha", 0xfedcba9876543210, {40}};
  const protocol::store_standing now{"beta", 12, {}};
  const known_store of_3{
      now, {9}, {2}, {{{0}, {0}}, {{40}, {52}}}, {{{3}, {8}, before, now, {70}, {52}, "it is new"}}};
  const known_store of_12{before, {4}, {0}, {{{0}, {7}}}};
  const auto entries =
      written(to_writes(std::vector<std::pair<ps_shard_id, known_store>>{{{3}, of_3}, {{12}, of_12}}));
  EXPECT_EQ(read_stores(entries), (store_book::stores{{{3}, of_3}, {{12}, of_12}}));
  EXPECT_TRUE(read_job(entries));
  EXPECT_THAT(read_stores({{"store/x", "a"}, {"store/000001", "\xff"}}), IsEmpty());
}

TEST(coordinator_journal, only_a_completed_job_has_ended_for_good) {
  const auto completed = read_job(ended(job_outcome::completed));
  ASSERT_TRUE(completed && completed->ended);
  EXPECT_EQ(completed->ended->outcome, job_outcome::completed);
  EXPECT_FALSE(read_job(ended(job_outcome::interrupted, "Ctrl-C"))->ended) << "it can be resumed";
  EXPECT_FALSE(read_job(ended(job_outcome::failed, "worker 0 died again"))->ended);
}

/// The dispatcher writes the course; both must read it alike.
TEST(coordinator_journal, finds_the_results_and_the_parked_slots_in_the_course) {
  data_dispatcher::journaled_course course;
  course.parked = {{{3}, {1}}, {{7}, {0}}};
  for (const std::uint64_t version : {8, 20}) {
    protocol::evaluated result;
    result.version = {version};
    result.timeline = {2};
    result.loss_sum_bits = version * 1000;
    result.metric_bits = {version, 7};
    result.records = 50;
    course.evaluations.push_back(result);
  }
  const auto entries = written(data_dispatcher::course_writer{}.to_writes(course));
  const auto job = read_job(entries);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->evaluations, course.evaluations);
  EXPECT_EQ(read_parked(entries), course.parked);
  EXPECT_THAT(read_parked({}), IsEmpty());
}

TEST(coordinator_journal, what_cannot_be_read_is_refused_naming_the_entry_and_the_way_out) {
  for (const auto* key : {"role/worker 3", "outcome", "course"}) {
    const auto said = refusal({{key, "\xff\xff\xff"}});
    EXPECT_THAT(said, HasSubstr(fmt::format("the entry '{}' of the journal cannot be read", key)));
    EXPECT_THAT(said, HasSubstr("restore the run folder from a copy"));
  }
}

TEST(coordinator_journal, a_role_under_the_name_of_another_is_refused) {
  const auto bytes = *to_writes(journal_fences{1, {worker_3()}}).front().value;
  EXPECT_THAT(refusal({{"role/worker 4", bytes}}), HasSubstr("role/worker 4"));
}

TEST(coordinator_journal, a_kind_of_role_that_is_not_known_is_refused) {
  records::JournalRole newer;
  newer.set_kind(99);
  EXPECT_THAT(refusal({{"role/evaluator 0", newer.SerializeAsString()}}), HasSubstr("role/evaluator 0"));
}

TEST(coordinator_journal, entries_of_others_are_left_alone) {
  EXPECT_EQ(refusal({{"recovery/000000000001/000000", "\xff"}, {"run/000000000001", "\xff"}}), "");
}

// ---- a run that nobody runs

class past_run_test : public testing::Test {
protected:
  std::unique_ptr<persistence::folder_journal> open(std::uint64_t owner) const {
    return persistence::folder_journal::open({directory.string(), {owner}, nullptr}).value();
  }

  test::temporary_folder folder;
  std::filesystem::path directory = folder.path() / run_layout::journal;
};

TEST_F(past_run_test, without_a_journal_never_started) {
  const auto past = read_past_run(folder.path());
  ASSERT_TRUE(past) << past.error().message;
  EXPECT_FALSE(past->completed);
  EXPECT_EQ(past->last_coordinator, incarnation{0});
  std::filesystem::create_directories(directory);
  EXPECT_EQ(read_past_run(folder.path())->last_coordinator, incarnation{0})
      << "died while it made its journal";
}

TEST_F(past_run_test, knows_the_last_coordinator_that_was_there_or_may_be_started) {
  open(3);
  EXPECT_EQ(read_past_run(folder.path())->last_coordinator, incarnation{3});
  ASSERT_TRUE(open(5)->write(to_writes(journal_fences{1, {coordinator_0(), worker_3()}})));
  EXPECT_EQ(read_past_run(folder.path())->last_coordinator, incarnation{5});
  auto issued = coordinator_0();
  issued.last_issued = {8};
  ASSERT_TRUE(open(6)->write(to_writes(journal_fences{1, {issued}})));
  EXPECT_EQ(read_past_run(folder.path())->last_coordinator, incarnation{8});
}

TEST_F(past_run_test, is_completed_when_the_journal_says_so) {
  const auto end = [&](std::uint64_t owner, job_outcome outcome) {
    EXPECT_TRUE(open(owner)->write(to_writes(journal_end{{outcome, ""}})));
    return read_past_run(folder.path())->completed;
  };
  EXPECT_FALSE(end(1, job_outcome::interrupted));
  EXPECT_FALSE(end(2, job_outcome::failed));
  EXPECT_TRUE(end(3, job_outcome::completed));
}

TEST_F(past_run_test, has_the_report_of_a_run_that_is_completed) {
  EXPECT_TRUE(open(1)->write(to_writes(journal_end{{job_outcome::completed, ""}}, "{}\n")));
  EXPECT_EQ(read_past_run(folder.path())->report, "{}\n");
  EXPECT_THAT(to_writes(journal_end{{job_outcome::completed, ""}}, std::string(std::size_t{1} << 20, ' ')),
              testing::SizeIs(1))
      << "an etcd would not take it";
}

TEST_F(past_run_test, is_refused_while_its_coordinator_runs) {
  const auto owner = open(1);
  EXPECT_EQ(read_past_run(folder.path()).error().code, error_code::in_use);
}

TEST_F(past_run_test, leaves_in_the_stores_of_its_ps_shards_who_opened_them_last) {
  EXPECT_EQ(highest_opener(folder.path(), 2), incarnation{}) << "there are none";
  EXPECT_FALSE(find_job({}, folder.path(), 2)->lost) << "a new job";
  for (const std::uint64_t shard : {0, 1}) {
    persistence::shard_store_options options;
    options.directory = (folder.path() / fmt::format("ps_shard-{}", shard)).string();
    options.opener = {7 + shard};
    ASSERT_TRUE(persistence::shard_store::open(options));
  }
  EXPECT_EQ(highest_opener(folder.path(), 3), incarnation{8});
  const auto lost = find_job({}, folder.path(), 3);
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->lost) << "PS shards were started by a journal that is gone";
  EXPECT_EQ(lost->highest_found, incarnation{8});
  const auto known = find_job(written(to_writes(journal_fences{1, {worker_3()}})), folder.path(), 3);
  ASSERT_TRUE(known);
  EXPECT_FALSE(known->lost);
}

TEST_F(past_run_test, with_a_journal_that_cannot_be_looked_for_is_refused_and_not_taken_for_a_new_run) {
  std::filesystem::create_directory_symlink(directory, directory); // to itself
  EXPECT_EQ(read_past_run(folder.path()).error().code, error_code::system);
}

TEST_F(past_run_test, with_stores_that_cannot_be_looked_for_is_not_taken_for_a_new_run) {
  const auto store = common::store_directory(folder.path(), {0});
  std::filesystem::create_directory_symlink(store, store); // to itself
  const auto job = find_job({}, folder.path(), 1, false);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, error_code::system);
}

TEST_F(past_run_test, with_a_journal_that_cannot_be_read_is_refused) {
  ASSERT_TRUE(open(1)->write(std::vector<persistence::journal_write>{{"outcome", "\xff\xff\xff"}}));
  EXPECT_EQ(read_past_run(folder.path()).error().code, error_code::storage_damaged);
}

} // namespace
} // namespace dlrun::coordinator
