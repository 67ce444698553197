#include "actors/coordinator/dispatcher_keeper.hpp"

#include "actors/common/clock.hpp"

#include <dlrun/check.hpp>

namespace dlrun::coordinator {
namespace {

constexpr auto dispatcher_id = "data_dispatcher";

supervision::supervisor make_supervisor(const spec::RestartSpec& budget) {
  supervision::supervisor_options options;
  options.intensity = static_cast<std::size_t>(budget.intensity());
  options.period = protocol::from_seconds<std::chrono::milliseconds>(budget.period_s());
  auto made = supervision::supervisor::create(options, {{.id = dispatcher_id}});
  DLRUN_CHECK(made.has_value(), "the validated spec makes a valid supervisor");
  return std::move(*made);
}

} // namespace

dispatcher_keeper::dispatcher_keeper(pointer self, const spec::RestartSpec& budget, events told)
    : self_(self)
    , told_(std::move(told))
    , supervisor_(make_supervisor(budget)) {}

void dispatcher_keeper::start() { carry_out(supervisor_.start(common::now())); }

void dispatcher_keeper::on_tick() { carry_out(supervisor_.tick(common::now())); }

void dispatcher_keeper::on_down(const caf::down_msg& down) {
  if (caf::actor_cast<caf::actor_addr>(current_) != down.source) return;
  const auto how = supervision::child_exit{to_string(down.reason)};
  carry_out(supervisor_.child_exited(dispatcher_id, generation_, how, common::now()));
}

void dispatcher_keeper::carry_out(const supervision::actions& actions) {
  for (const auto& action : actions) {
    if (const auto* order = std::get_if<supervision::start_child>(&action)) {
      generation_ = order->number;
      current_ = told_.start(order->reason);
      self_->monitor(current_);
      carry_out(supervisor_.child_started(dispatcher_id, order->number, common::now()));
    } else if (const auto* end = std::get_if<supervision::escalate>(&action)) {
      told_.give_up(end->reason);
    }
  }
}

} // namespace dlrun::coordinator
