/// What the report is made of, and the report.
#pragma once

#include "actors/common/job_journal.hpp"
#include "actors/coordinator/coordinator_context.hpp"
#include "actors/coordinator/coordinator_core.hpp"
#include "actors/coordinator/progress_book.hpp"
#include "actors/coordinator/run_tallies.hpp"
#include "actors/coordinator/store_book.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlrun::coordinator {

/// Keeps what roles say for the report, and writes it when the job ends. No actor depends on what
/// it keeps.
class report_writer {
public:
  /// `context` outlives this.
  explicit report_writer(const coordinator_context& context)
      : context_(context) {}

  /// From here on tallies and progress are those of the run, with what starts before this one
  /// noted.
  void restore(std::shared_ptr<const common::job_journal> journal);
  void add(const protocol::training_progress& progress);
  run_tallies& tallies() { return tallies_; }
  /// Newest of each PS shard that has been heard of.
  std::vector<protocol::shard_status> shards() const { return progress_.all(); }

  /// What is to be journaled for the reports of later starts: most of it every second.
  common::job_journal::writes changes(const coordinator_core& core, protocol::time_point now);
  /// The same at the end, after which nobody writes.
  common::job_journal::writes last_changes(const coordinator_core& core, protocol::time_point now);

  struct written {
    protocol::job_ended ended; ///< as wanted, if the numbers and the disk agree
    std::string text;          ///< the report, which the agent has to write: it has the run folder
  };
  /// Into the run folder, where the journal is: then it is on this host. Blocks for the disk.
  written write(const protocol::job_ended& ended, const coordinator_core& core,
                std::vector<store_loss> store_losses, protocol::time_point now) const;

private:
  std::vector<protocol::evaluated> evaluations(const coordinator_core& core) const;

  const coordinator_context& context_;
  std::shared_ptr<const common::job_journal> journal_; ///< null where nothing is kept on disk
  run_tallies tallies_;
  progress_book progress_;
};

} // namespace dlrun::coordinator
