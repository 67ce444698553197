#include "actors/coordinator/fence_supply.hpp"

#include <utility>

namespace dlrun::coordinator {

using protocol::role_name;

bool fence_supply::on_agent(std::optional<std::uint64_t> agent) {
  agent_is_there_ = true;
  if (!agent || *agent == std::exchange(config_.book.agent, *agent)) return false;
  book_.serve(*agent);
  return true;
}

bool fence_supply::issue(const role_name& role, bool is_running) {
  const bool is_coordinator = role.kind == protocol::role_kind::coordinator;
  const auto spare = is_coordinator ? config_.spare_of_coordinator : config_.spare;
  return book_.issue(role, spare + (is_running ? 0 : 1));
}

void fence_supply::grant(const role_name& role, coordinator_actions& out) const {
  const auto& fences = book_.granted(role);
  if (agent_is_there_ && !fences.empty()) out.emplace_back(send_grant{{role, fences, config_.book.agent}});
}

void fence_supply::journal(coordinator_actions& out) {
  auto roles = book_.begin_write();
  if (roles.empty()) return;
  writing_ = std::exchange(older_, std::nullopt);
  out.emplace_back(journal_fences{++last_write_, std::move(roles), writing_});
}

void fence_supply::on_journaled(std::uint64_t id, bool grants, coordinator_actions& out) {
  if (id != last_write_) return;
  for (const auto& role : book_.end_write())
    if (grants) grant(role, out);
  if (const auto older = std::exchange(writing_, std::nullopt)) {
    out.emplace_back(*older);
    out.emplace_back(restart_dispatcher{});
  }
  journal(out);
}

} // namespace dlrun::coordinator
