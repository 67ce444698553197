/// How a job ends: digests of the last version, the report, the journal, and then everybody is
/// told.
#include "actors/coordinator/coordinator_core.hpp"

#include <algorithm>

namespace dlrun::coordinator {

/// Where state is durable the evaluation came before, and a rewind at the very end makes it begin
/// again.
coordinator_actions coordinator_core::on_training_finished(timeline_id timeline, version_id version,
                                                           time_point) {
  coordinator_actions out;
  const bool again = (phase_ == phase::digesting || phase_ == phase::closing) && timeline > timeline_;
  if (phase_ != phase::training && !again) return out;
  timeline_ = timeline;
  last_version_ = version;
  if (config_.evaluates && !config_.is_durable)
    phase_ = phase::evaluating;
  else
    begin_digests(out);
  return out;
}

coordinator_actions coordinator_core::on_evaluated(const protocol::evaluated& result, time_point) {
  coordinator_actions out;
  if (phase_ != phase::over) evaluations_[result.version] = result;
  if (config_.is_durable || phase_ != phase::evaluating) return out;
  begin_digests(out);
  return out;
}

void coordinator_core::begin_digests(coordinator_actions& out) {
  phase_ = phase::digesting;
  for (std::uint32_t i = 0; i < config_.ps_shards; ++i) {
    digests_next_[{i}] = config_.blocks_of_shard[i].first;
    ask_digests({i}, out);
  }
  finish_when_digested(out);
}

std::uint32_t coordinator_core::digests_asked(ps_shard_id shard) const {
  const auto left = config_.blocks_of_shard[shard.value].second - digests_next_.at(shard);
  return std::min(left, protocol::digest_blocks_max);
}

bool coordinator_core::ask_digests(ps_shard_id shard, coordinator_actions& out) const {
  const auto count = digests_asked(shard);
  if (count == 0) return false;
  out.emplace_back(request_digests{shard, {timeline_, last_version_, digests_next_.at(shard), count}});
  return true;
}

coordinator_actions coordinator_core::on_digests(ps_shard_id shard, const protocol::digest_reply& reply,
                                                 time_point) {
  coordinator_actions out;
  if (phase_ != phase::digesting || shard.value >= config_.ps_shards) return out;
  auto& next = digests_next_.at(shard);
  const auto count = digests_asked(shard);
  if (count == 0 || reply.first_block != next || reply.digests.size() != count * digest_bytes) return out;
  std::copy(reply.digests.begin(), reply.digests.end(),
            digests_.begin() + static_cast<std::ptrdiff_t>(next * digest_bytes));
  next += count;
  ask_digests(shard, out);
  finish_when_digested(out);
  return out;
}

void coordinator_core::finish_when_digested(coordinator_actions& out) {
  for (const auto& [shard, next] : digests_next_)
    if (next < config_.blocks_of_shard[shard.value].second) return;
  if (!config_.is_durable) return finish(protocol::job_outcome::completed, {}, out);
  phase_ = phase::closing;
  out.emplace_back(close_training{timeline_});
}

/// Only now can nobody go back any more: what was digested is what the job has trained.
coordinator_actions coordinator_core::on_training_closed(timeline_id timeline, time_point) {
  coordinator_actions out;
  if (phase_ == phase::closing && timeline == timeline_) finish(protocol::job_outcome::completed, {}, out);
  return out;
}

void coordinator_core::finish(protocol::job_outcome outcome, std::string reason, coordinator_actions& out,
                              error_code code) {
  if (phase_ == phase::over) return;
  phase_ = phase::over;
  out.emplace_back(finish_job{{outcome, std::move(reason), code}});
}

/// R19: the report first, since it can be written again; then the journal; then the agent, which
/// ends everybody.
coordinator_actions coordinator_core::on_report_written(const protocol::job_ended& as_written, time_point) {
  coordinator_actions out;
  if (phase_ != phase::over || ended_) return out;
  ended_ = as_written;
  if (config_.is_durable && as_written.outcome == protocol::job_outcome::completed) {
    end_in_writing_ = true;
    out.emplace_back(journal_end{as_written});
  } else {
    announce_the_end(out);
  }
  return out;
}

coordinator_actions coordinator_core::on_end_journaled(time_point) {
  coordinator_actions out;
  if (!std::exchange(end_in_writing_, false)) return out;
  announce_the_end(out);
  return out;
}

void coordinator_core::announce_the_end(coordinator_actions& out) {
  if (ended_ && !end_in_writing_) out.emplace_back(announce_end{*ended_});
}

coordinator_actions coordinator_core::on_agent_gave_up(const std::string& reason, time_point,
                                                       error_code code) {
  coordinator_actions out;
  finish(protocol::job_outcome::failed, reason, out, code);
  return out;
}

coordinator_actions coordinator_core::on_stop_requested(const std::string& reason, time_point) {
  coordinator_actions out;
  finish(protocol::job_outcome::interrupted, reason, out);
  return out;
}

} // namespace dlrun::coordinator
