#include "actors/coordinator/report_writer.hpp"

#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/coordinator/job_report.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <iterator>

namespace dlrun::coordinator {

void report_writer::restore(std::shared_ptr<const common::job_journal> journal) {
  journal_ = std::move(journal);
  progress_ = progress_book{journal_->entries()};
  tallies_ = run_tallies{journal_->entries(), context_.job->started, context_.self.incarnation,
                         context_.job->agent_process};
}

void report_writer::add(const protocol::training_progress& progress) {
  for (const auto& shard : progress.shards) progress_.hear(shard);
  tallies_.add_tallies(progress.tallies);
}

common::job_journal::writes report_writer::changes(const coordinator_core& core, protocol::time_point now) {
  auto writes = tallies_.changes(core.recoveries().all(), now);
  std::ranges::move(progress_.changes(now), std::back_inserter(writes));
  return writes;
}

common::job_journal::writes report_writer::last_changes(const coordinator_core& core,
                                                        protocol::time_point now) {
  auto writes = tallies_.last_changes(core.recoveries().all(), now);
  std::ranges::move(progress_.changes(std::nullopt), std::back_inserter(writes));
  return writes;
}

/// Those that count. Without a journal nobody goes back, so it is all that were heard.
std::vector<protocol::evaluated> report_writer::evaluations(const coordinator_core& core) const {
  if (journal_) return read_evaluations(journal_->entries());
  std::vector<protocol::evaluated> all;
  for (const auto& [version, result] : core.ending().evaluations()) all.push_back(result);
  return all;
}

report_writer::written report_writer::write(const protocol::job_ended& ended, const coordinator_core& core,
                                            std::vector<store_loss> store_losses,
                                            protocol::time_point now) const {
  const auto& job = *context_.job;
  report_sources sources{.ended = ended,
                         .shards = shards(),
                         .evaluations = evaluations(core),
                         .last_version = core.ending().last_version(),
                         .digests = core.ending().digests(),
                         .recoveries = core.recoveries().all(),
                         .tallies = tallies_};
  sources.store_losses = std::move(store_losses);
  sources.device = core.starts().arithmetic().device();
  if (journal_) sources.parked = read_parked(journal_->entries());
  sources.ended = judged(job, sources);
  const auto report = make_report(job, sources, now);
  if (job.spec.cluster().journal().has_etcd()) return {sources.ended, to_json(report)};
  const auto written = dlrun::write_report(job.run_dir / run_layout::report, report);
  if (written) return {sources.ended, {}};
  context_.log->error("report-failed: {}", written.error().message);
  return {{protocol::job_outcome::failed, written.error().message, written.error().code}, {}};
}

} // namespace dlrun::coordinator
