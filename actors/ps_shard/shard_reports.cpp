#include "actors/ps_shard/shard_reports.hpp"

#include <fmt/core.h>
#include <utility>

namespace dlrun::ps_shard {

shard_reports::shard_reports(pointer self, const common::role_context& context, links asked)
    : self_(self)
    , context_(context)
    , asked_(std::move(asked))
    , stalls_({context.role.index}) {}

void shard_reports::follow(const protocol::data_dispatcher_actor& dispatcher) {
  if (std::exchange(dispatcher_, dispatcher) != dispatcher) status_sender_.change_receiver();
}

void shard_reports::restart(std::shared_ptr<const threaded_store> store) {
  store_ = std::move(store);
  metrics_ = epoch_metrics{store_->restored_metrics()};
  divergence_.forget();
}

void shard_reports::add(step_id step, const step_metrics& metrics) {
  metrics_.add(context_.job->sampler.epoch_of(step), metrics);
}

// ---- status and heartbeat

protocol::shard_status shard_reports::status(std::uint64_t probe) {
  auto status = asked_.status(probe);
  status.sequence = ++sequence_;
  status.has_metrics = metrics().has_value();
  status.metrics = metrics().value_or(protocol::training_metrics{});
  status.step_times = step_times_.quantiles();
  if (!store_) return status;
  const auto copies = asked_.copies();
  status.bytes_copied = copies.bytes_copied;
  status.copy_waited_us = copies.waited_us;
  const auto counters = store_->counters();
  status.bytes_logged = counters.bytes_logged;
  status.bytes_snapshotted = counters.bytes_snapshotted;
  status.store = store_->standing();
  return status;
}

void shard_reports::send_status(std::uint64_t probe) {
  if (dispatcher_) self_->send(dispatcher_, status(probe));
}

void shard_reports::report_status() {
  if (dispatcher_) status_sender_.send(self_, dispatcher_, status(0), [this] { report_status(); });
}

void shard_reports::report_alive() {
  const auto applied = asked_.applied();
  const auto copies = asked_.copies();
  const protocol::heartbeat beat{.role = context_.role,
                                 .self = context_.self,
                                 .state = !dispatcher_                             ? "starting"
                                          : stalls_.is_stalled()                   ? "disk-full"
                                          : copies.is_moving                       ? "moving"
                                          : applied.value == context_.job->steps() ? "done"
                                                                                   : "training",
                                 .step = applied.value,
                                 .durable_step = store_ ? store_->newest().value : 0,
                                 .has_metrics = metrics().has_value(),
                                 .metrics = metrics().value_or(protocol::training_metrics{}),
                                 .store = store_ ? store_->standing() : protocol::store_standing{},
                                 .restorable = store_ ? store_->restorable() : protocol::version_set{},
                                 .copies = copies,
                                 .coordinator = context_.known_coordinator()};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, beat, [this](const auto& location) { asked_.located(location); });
}

void shard_reports::report() {
  report_status();
  report_alive();
}

void shard_reports::on_tick() {
  give_up_on_quota();
  report_divergence();
  report();
}

// ---- what is wrong

/// It has no step to tell yet, but it lives.
void shard_reports::on_opening_stalled(const std::optional<error>& why) {
  if (!why) return on_log_stalled(std::nullopt);
  tell(stalls_.on_opening(*why, common::now()));
  const protocol::heartbeat alive{.role = context_.role, .self = context_.self, .state = "disk-full"};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(self_, context_.agent, alive,
                                                                    [](const auto&) {});
}

void shard_reports::tell(const std::optional<stall_watch::word>& news) {
  if (!news) return;
  context_.log->warn("disk: {}", news->text);
  self_->send(context_.agent, protocol::job_event{news->is_stalled ? "disk-full" : "disk-ok", context_.role,
                                                  context_.self.incarnation, news->text});
}

void shard_reports::give_up_on_quota() {
  const auto why = stalls_.find_hopeless(common::now());
  if (!why) return;
  const auto& job = *context_.job;
  self_->send(
      context_.agent,
      protocol::stop_job{protocol::job_outcome::failed,
                         fmt::format("{}. It is the part of ps_shard {} in durability.disk_quota ({}): go on "
                                     "with '{} --set durability.disk_quota=SIZE', larger, or 0 for no limit",
                                     why->message, context_.role.index, job.spec.durability().disk_quota(),
                                     job.resume_command()),
                         why->code});
}

void shard_reports::on_diverged(step_id step, timeline_id timeline, const error& why) {
  context_.log->error("diverged: step {}: {}", step, why.message);
  divergence_.found({context_.role, context_.self, timeline, step, false, {}, why.message}, common::now());
}

void shard_reports::report_divergence() {
  const protocol::duration usual{static_cast<protocol::duration::rep>(step_times_.quantiles().p50_us)};
  if (const auto what = divergence_.due(common::now(), usual); what && dispatcher_)
    self_->send(dispatcher_, *what);
}

} // namespace dlrun::ps_shard
