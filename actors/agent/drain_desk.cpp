#include "actors/agent/drain_desk.hpp"

#include "actors/agent/host_events.hpp"

#include <utility>

namespace dlrun::agent {

drain_sight drain_desk::look(const std::vector<role_view>& roles) const {
  return {roles, hosts_->roles().places(), hosts_->roles().roster(), agent_.is_ending()};
}

result<std::string> drain_desk::begin(const std::string& host) {
  const auto roles = agent_.roles();
  auto after = drains_;
  const auto said = after.begin(host, look(roles));
  return follow(host, drain_stage::draining, std::move(after), said);
}

result<std::string> drain_desk::undo(const std::string& host) {
  const auto roles = agent_.roles();
  auto after = drains_;
  const auto said = after.undo(host, look(roles));
  return follow(host, drain_stage::none, std::move(after), said);
}

result<std::string> drain_desk::follow(const std::string& host, drain_stage stage, host_drains after,
                                       const result<protocol::job_event>& said) {
  if (!said) return tl::unexpected(said.error());
  if (const auto kept = keep(host, stage); !kept) return tl::unexpected(kept.error());
  drains_ = std::move(after);
  hosts_->set_drain(host, stage);
  agent_.tell(*said);
  agent_.show(); // who has the answer and looks sees it
  return said->text;
}

result<void> drain_desk::keep(const std::string& host, drain_stage stage) {
  auto all = kept_.all;
  if (stage == drain_stage::none)
    all.erase(host);
  else
    all[host] = stage;
  if (auto kept = kept_.keep(all); !kept) return kept;
  kept_.all = std::move(all);
  return {};
}

void drain_desk::tick(protocol::time_point now) {
  if (agent_.is_ending() || (drains_.is_idle() && now < next_look_)) return;
  next_look_ = now + look_period;
  const auto roles = agent_.roles();
  const auto steps = drains_.next(look(roles), now);
  for (const auto& [host, stage] : steps.changes) {
    if (const auto kept = keep(host, stage); !kept)
      agent_.tell(host_events::of_agent("run-folder-failed", kept.error().message));
    hosts_->set_drain(host, stage);
  }
  for (const auto& event : steps.events) agent_.tell(event);
  for (const auto& role : steps.stays) agent_.stay(role);
  for (const auto& one : steps.departures)
    if (!agent_.vacate(one)) drains_.not_asked(one.role);
}

} // namespace dlrun::agent
