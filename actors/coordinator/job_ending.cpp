#include "actors/coordinator/job_ending.hpp"

#include <utility>

namespace dlrun::coordinator {

using protocol::job_outcome;

job_ending::job_ending(const coordinator_core_config& config, const journaled_job& journaled)
    : is_durable_(config.is_durable)
    , evaluates_last_(config.evaluates && !config.is_durable)
    , last_version_{config.steps}
    , digests_(config.blocks_of_shard)
    , ended_(journaled.ended) {
  for (const auto& one : journaled.evaluations) evaluations_[one.version] = one;
  if (ended_) phase_ = phase::over;
}

std::optional<protocol::evaluated> job_ending::evaluation() const {
  const auto found = evaluations_.find(last_version_);
  return found == evaluations_.end() ? std::nullopt : std::optional(found->second);
}

// ---- from the last step to the end

/// Where state is durable the evaluation came before, and a rewind at the very end makes it begin
/// again.
coordinator_actions job_ending::on_training_finished(timeline_id timeline, version_id version) {
  const bool again = (phase_ == phase::digesting || phase_ == phase::closing) && timeline > timeline_;
  if (phase_ != phase::training && !again) return {};
  timeline_ = timeline;
  last_version_ = version;
  if (!evaluates_last_) return begin_digests();
  phase_ = phase::evaluating;
  return {};
}

coordinator_actions job_ending::on_evaluated(const protocol::evaluated& result) {
  if (phase_ != phase::over) evaluations_[result.version] = result;
  if (phase_ != phase::evaluating) return {};
  return begin_digests();
}

coordinator_actions job_ending::begin_digests() {
  phase_ = phase::digesting;
  digests_.begin(timeline_, last_version_);
  return digests_.requests();
}

coordinator_actions job_ending::on_digests(ps_shard_id shard, const protocol::digest_reply& reply) {
  if (phase_ != phase::digesting || !digests_.take(shard, reply)) return {};
  if (const auto next = digests_.request(shard)) return {*next};
  if (!digests_.is_complete()) return {};
  if (!is_durable_) return finish({job_outcome::completed, {}});
  phase_ = phase::closing;
  return {protocol::close_training{timeline_}};
}

/// Only now can nobody go back any more: what was digested is what the job has trained.
coordinator_actions job_ending::on_training_closed(timeline_id timeline) {
  if (phase_ != phase::closing || timeline != timeline_) return {};
  return finish({job_outcome::completed, {}});
}

coordinator_actions job_ending::repeat() const {
  if (phase_ == phase::digesting) return digests_.requests();
  if (phase_ == phase::closing) return {protocol::close_training{timeline_}};
  return {};
}

// ---- the end

coordinator_actions job_ending::on_stop(const protocol::stop_job& stop) {
  if (stop.outcome == job_outcome::interrupted) return finish({job_outcome::interrupted, stop.reason});
  return fail(stop.reason, stop.code);
}

coordinator_actions job_ending::fail(std::string reason, error_code code) {
  return finish({job_outcome::failed, std::move(reason), code});
}

coordinator_actions job_ending::finish(protocol::job_ended how) {
  if (phase_ == phase::over) return {};
  phase_ = phase::over;
  return {finish_job{std::move(how)}};
}

/// R19: the report first, since it can be written again; then the journal; then the agent, which
/// ends everybody.
coordinator_actions job_ending::on_report_written(const protocol::job_ended& as_written) {
  if (phase_ != phase::over || ended_) return {};
  ended_ = as_written;
  if (!is_durable_ || as_written.outcome != job_outcome::completed) return announce();
  end_in_writing_ = true;
  return {journal_end{as_written}};
}

coordinator_actions job_ending::on_end_journaled() {
  if (!std::exchange(end_in_writing_, false)) return {};
  return announce();
}

coordinator_actions job_ending::announce() const {
  if (!ended_ || end_in_writing_) return {};
  return {announce_end{*ended_}};
}

} // namespace dlrun::coordinator
