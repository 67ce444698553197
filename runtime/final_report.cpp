#include "runtime/final_report.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/common/patience.hpp"
#include "actors/coordinator/journaled_report.hpp"
#include "job/choices.hpp"
#include "job/report_file.hpp"

#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// Nothing where there is none, or it cannot be read now: then the report says less.
coordinator::journal_entries entries_of(const common::job_context& job, spdlog::logger& log) {
  if (job::durability_log_of(job.spec) == job::durability_log::off) return {};
  auto journal = common::try_patiently(common::patience_with_the_dying, {}, [&] {
    return common::read_journal(common::journal_place_of(job.spec, job.run_dir));
  });
  if (!journal) log.warn("the report is without what the journal has: {}", journal.error().message);
  return journal && *journal ? std::move((*journal)->entries) : coordinator::journal_entries{};
}

/// Nobody but the coordinator says that a job is complete.
protocol::job_ended without_coordinator(protocol::job_ended ended) {
  if (ended.outcome == protocol::job_outcome::completed) ended.outcome = protocol::job_outcome::failed;
  if (ended.reason.empty()) ended.reason = "the coordinator left no report";
  return ended;
}

} // namespace

dlrun::report final_report(const common::job_context& job, const protocol::job_ended& ended,
                           const agent::run_snapshot& last, const std::filesystem::path& path,
                           spdlog::logger& log) {
  const auto written = job::find_report(path);
  if (written && *written) return **written;
  auto report = coordinator::make_report(
      job, coordinator::journaled_sources(job, entries_of(job, log), without_coordinator(ended)),
      common::now());
  if (last.step > 0) report.steps = last.step; // the roles have told it since
  report.epochs = report.steps / job.sampler.steps_per_epoch();
  if (!written) { // it may be whole, and say more: it stays
    log.error("{}", written.error().message);
    report.status = run_status::failed;
    report.reason += fmt::format("; the report that is there cannot be read: {}", written.error().message);
  } else if (const auto saved = dlrun::write_report(path, report); !saved) {
    log.error("{}", saved.error().message);
    report.reason += fmt::format("; there is no report: {}", saved.error().message);
  }
  return report;
}

} // namespace dlrun::runtime
