#include "actors/coordinator/journaled_report.hpp"

#include "actors/coordinator/progress_book.hpp"

#include <utility>

namespace dlrun::coordinator {

report_sources journaled_sources(const common::job_facts& job, const journal_entries& entries,
                                 protocol::job_ended ended) {
  report_sources sources{.ended = std::move(ended),
                         .shards = progress_book{entries}.all(),
                         .evaluations = read_evaluations(entries),
                         .last_version = {job.steps()},
                         .digests = {},
                         .recoveries = {},
                         .tallies = run_tallies{entries, job.started, {}, job.agent_process}};
  sources.parked = read_parked(entries);
  sources.store_losses = store_book{read_stores(entries)}.losses();
  return sources;
}

} // namespace dlrun::coordinator
