/// How a job ends.
#pragma once

#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/coordinator/coordinator_core_config.hpp"
#include "actors/coordinator/digest_collector.hpp"

#include <map>
#include <optional>
#include <string>

namespace dlrun::coordinator {

/// Pure: decides when the job is over, and what follows (R19). First the last version is evaluated
/// and digested, and the dispatcher closes the training; then the report is written, the end is
/// journaled, and the agent is told, which stops all roles.
class job_ending {
public:
  job_ending(const coordinator_core_config& config, const journaled_job& journaled);

  /// From the dispatcher; again after a rewind at the very end.
  coordinator_actions on_training_finished(timeline_id timeline, version_id version);
  /// With a journal, also before the training is finished, and again after a rewind.
  coordinator_actions on_evaluated(const protocol::evaluated& result);
  coordinator_actions on_digests(ps_shard_id shard, const protocol::digest_reply& reply);
  coordinator_actions on_training_closed(timeline_id timeline);
  /// Somebody wants the job to end early.
  coordinator_actions on_stop(const protocol::stop_job& stop);
  /// The job cannot go on. All that comes after the first end of a job changes nothing.
  coordinator_actions fail(std::string reason, error_code code = error_code::role_lost);
  /// The report is written; `as_written` is failed when it could not be.
  coordinator_actions on_report_written(const protocol::job_ended& as_written);
  coordinator_actions on_end_journaled();

  /// Asks again for what has not come.
  coordinator_actions repeat() const;
  /// Tells the agent of the end, if all is written that must be before.
  coordinator_actions announce() const;
  /// Nobody takes part any more.
  bool is_over() const { return phase_ == phase::over; }

  /// All block digests in canonical order, 32 bytes each; empty before all are there.
  std::string digests() const { return digests_.digests(); }
  /// The last version: N until the dispatcher has said where training finished.
  version_id last_version() const { return last_version_; }
  /// Those heard, by version; where a rewind voided some, they may be there still.
  const std::map<version_id, protocol::evaluated>& evaluations() const { return evaluations_; }
  /// That of the last version.
  std::optional<protocol::evaluated> evaluation() const;

private:
  enum class phase : std::uint8_t { training, evaluating, digesting, closing, over };

  coordinator_actions begin_digests();
  coordinator_actions finish(protocol::job_ended how);

  bool is_durable_;
  bool evaluates_last_; ///< only when training is finished is the last version evaluated
  phase phase_ = phase::training;
  timeline_id timeline_{}; ///< that finished
  version_id last_version_;
  std::map<version_id, protocol::evaluated> evaluations_; ///< those above the last version may be void
  digest_collector digests_;
  std::optional<protocol::job_ended> ended_; ///< the report is written
  bool end_in_writing_ = false;              ///< to the journal
};

} // namespace dlrun::coordinator
