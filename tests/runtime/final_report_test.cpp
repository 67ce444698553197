// The report of a run whose coordinator has left none: it was stopped, or lost, before it could.
#include "runtime/final_report.hpp"

#include "actors/common/job_journal.hpp"
#include "actors/coordinator/progress_book.hpp"
#include "actors/coordinator/run_tallies.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"

#include <future>
#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using std::chrono::seconds;

class final_report_test : public testing::Test {
protected:
  dlrun::report made(const agent::run_snapshot& last = {}) {
    return final_report(*job, {protocol::job_outcome::interrupted, "Ctrl-C"}, last, path, log);
  }
  void keep(const common::job_journal::writes& writes) const {
    const auto journal = common::job_journal::open(job->run_dir, {1}, {}).value();
    std::promise<result<void>> done;
    journal->write(writes, [&](const result<void>& written) { done.set_value(written); });
    ASSERT_TRUE(done.get_future().get());
  }

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  std::filesystem::path path = folder.path() / "report.json";
  spdlog::logger log{"test"};
};

TEST_F(final_report_test, is_what_the_coordinator_wrote) {
  dlrun::report written;
  written.steps = 7;
  ASSERT_TRUE(write_report(path, written));
  EXPECT_EQ(made().steps, 7U);
}

TEST_F(final_report_test, leaves_one_alone_that_it_cannot_read) {
  std::filesystem::create_directory(path);
  const auto report = made();
  EXPECT_EQ(report.status, run_status::failed);
  EXPECT_THAT(report.reason,
              testing::HasSubstr("Ctrl-C; the report that is there cannot be read: cannot read '"));
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(final_report_test, has_what_the_starts_before_have_journaled) {
  coordinator::progress_book progress;
  protocol::shard_status shard;
  shard.applied = {9};
  shard.ledger.samples_applied = 30;
  progress.hear(shard);
  coordinator::run_tallies tallies{{}, job->started - seconds(60), {1}, job->agent_process + 1};
  tallies.add_tallies({{.role = protocol::ps_shard_role({0}),
                        .incarnation = {1},
                        .slots_computed = 0,
                        .bytes_logged = 5000}});
  auto writes = tallies.last_changes({}, job->started - seconds(50));
  for (auto& one : progress.changes(std::nullopt)) writes.push_back(std::move(one));
  keep(writes);
  const auto report = made();
  EXPECT_EQ(report.status, run_status::interrupted);
  EXPECT_EQ(report.reason, "Ctrl-C");
  EXPECT_EQ(report.steps, 9U);
  EXPECT_EQ(report.epochs, 3U);
  EXPECT_EQ(report.samples_committed, 30U);
  EXPECT_EQ(report.bytes_logged, 5000U);
  EXPECT_GE(report.wall_seconds, 10);
  EXPECT_EQ(read_report(path).value().steps, 9U);
}

TEST_F(final_report_test, has_the_steps_that_the_roles_have_told_since) {
  agent::run_snapshot last;
  last.step = 11;
  EXPECT_EQ(made(last).steps, 11U);
}

TEST_F(final_report_test, of_a_run_that_never_had_a_coordinator_has_no_steps) {
  EXPECT_EQ(made().steps, 0U);
  EXPECT_EQ(made().reason, "Ctrl-C");
}

} // namespace
} // namespace dlrun::runtime
