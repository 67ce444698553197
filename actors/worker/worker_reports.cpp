#include "actors/worker/worker_reports.hpp"

#include <utility>

namespace dlrun::worker {

worker_reports::worker_reports(pointer self, const common::role_context& context, links asked)
    : self_(self)
    , context_(context)
    , asked_(std::move(asked)) {}

void worker_reports::follow(const protocol::data_dispatcher_actor& dispatcher) {
  if (std::exchange(dispatcher_, dispatcher) != dispatcher) status_sender_.change_receiver();
}

void worker_reports::report_status() {
  if (dispatcher_) status_sender_.send(self_, dispatcher_, asked_.status(), [this] { report_status(); });
}

void worker_reports::measure_speed(const protocol::worker_status& status) {
  const auto slots = status.slots_computed - std::exchange(slots_measured_, status.slots_computed);
  const auto time = status.compute_us - std::exchange(compute_us_measured_, status.compute_us);
  if (time > 0) speed_.add(static_cast<double>(slots), static_cast<double>(time) / 1e6);
}

void worker_reports::report_alive() {
  const auto status = asked_.status();
  measure_speed(status);
  const protocol::heartbeat beat{.role = context_.role,
                                 .self = context_.self,
                                 .state = dispatcher_ ? asked_.activity() : "starting",
                                 .step = status.open_step.value,
                                 .slots = status.leased,
                                 .slots_per_kilosecond =
                                     static_cast<std::uint64_t>(1000 * speed_.slots_per_second()),
                                 .coordinator = context_.known_coordinator()};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(
      self_, context_.agent, beat, [this](const auto& location) { asked_.located(location); });
}

void worker_reports::report() {
  report_status();
  report_alive();
}

void worker_reports::on_tick() {
  if (diverged_) tell_dispatcher(*diverged_);
  if (unusable_data_) self_->send(context_.agent, *unusable_data_);
  report();
}

void worker_reports::on_diverged(const protocol::divergence& what) {
  context_.log->error("diverged: step {}{}: {}", what.step,
                      what.has_slot ? fmt::format(", slot {}", what.slot) : "", what.text);
  diverged_ = what;
  tell_dispatcher(what);
}

void worker_reports::on_unusable_data(const protocol::stop_job& why) {
  context_.log->error("unusable-data: {}", why.reason);
  unusable_data_ = why;
  self_->send(context_.agent, why);
}

} // namespace dlrun::worker
