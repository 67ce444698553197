#include "actors/agent/drain_desk.hpp"

namespace dlrun::agent {

drain_sight drain_desk::look(const std::vector<role_view>& roles) const {
  return {roles, hosts_->roles().places(), hosts_->roles().roster(), agent_.is_ending()};
}

result<void> drain_desk::begin(const std::string& host) {
  const auto roles = agent_.roles();
  return follow(host, drain_stage::draining, drains_.begin(host, look(roles)));
}

result<void> drain_desk::undo(const std::string& host) {
  const auto roles = agent_.roles();
  return follow(host, drain_stage::none, drains_.undo(host, look(roles)));
}

result<void> drain_desk::follow(const std::string& host, drain_stage stage,
                                const result<protocol::job_event>& said) {
  if (!said) return tl::unexpected(said.error());
  hosts_->set_drain(host, stage);
  agent_.tell(*said);
  agent_.show(); // who has the answer and looks sees it
  return {};
}

void drain_desk::tick(protocol::time_point now) {
  if (drains_.is_idle() || agent_.is_ending()) return;
  const auto roles = agent_.roles();
  const auto steps = drains_.next(look(roles), now);
  for (const auto& [host, stage] : steps.changes) hosts_->set_drain(host, stage);
  for (const auto& event : steps.events) agent_.tell(event);
  for (const auto& role : steps.stays) agent_.stay(role);
  for (const auto& one : steps.departures)
    if (!agent_.vacate(one)) drains_.not_asked(one.role);
}

} // namespace dlrun::agent
