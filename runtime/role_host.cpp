#include "runtime/role_host.hpp"

#include "actors/common/role_log.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/data_dispatcher/data_dispatcher.hpp"
#include "actors/keeper/keeper.hpp"
#include "actors/ps_shard/ps_shard.hpp"
#include "actors/worker/worker.hpp"

#include <dlrun/check.hpp>

namespace dlrun::runtime {
namespace {

using protocol::role_kind;

caf::actor start_coordinator(caf::actor_system& system, const common::role_context& context) {
  const auto start_dispatcher = [&system, context](dlrun::incarnation incarnation,
                                                   const protocol::coordinator_actor& coordinator,
                                                   const std::shared_ptr<common::job_journal>& journal) {
    auto own = context;
    own.role = {role_kind::data_dispatcher, 0};
    own.self = {incarnation, context.self.token};
    own.log = common::make_role_log(*context.job, own.role, incarnation);
    return system.spawn(data_dispatcher::data_dispatcher_state::start, own,
                        data_dispatcher::data_dispatcher_state::arguments{coordinator, journal});
  };
  return caf::actor_cast<caf::actor>(system.spawn(coordinator::coordinator_state::start,
                                                  context.for_less<common::job_facts>(),
                                                  coordinator::dispatcher_starter{start_dispatcher}));
}

} // namespace

caf::actor start_role(caf::actor_system& system, common::role_context context) {
  switch (context.role.kind) {
  case role_kind::coordinator: return start_coordinator(system, context);
  case role_kind::ps_shard:
    return caf::actor_cast<caf::actor>(system.spawn(ps_shard::ps_shard_state::start, std::move(context)));
  case role_kind::keeper:
    return caf::actor_cast<caf::actor>(system.spawn(keeper::keeper_state::start, std::move(context)));
  case role_kind::worker:
    return caf::actor_cast<caf::actor>(system.spawn(worker::worker_state::start, std::move(context)));
  case role_kind::data_dispatcher:
  case role_kind::agent:
  case role_kind::host_agent: break;
  }
  DLRUN_CHECK(false, "{} is not started by an agent", protocol::to_string(context.role.kind));
}

void ask_to_leave(role_kind kind, const caf::actor& role) {
  if (kind == role_kind::worker)
    caf::anon_send(caf::actor_cast<protocol::worker_actor>(role), protocol::leave_job{});
  else
    caf::anon_send_exit(role, caf::exit_reason::user_shutdown);
}

std::optional<role_kind> role_kind_from(std::string_view word) {
  for (const auto kind : {role_kind::coordinator, role_kind::ps_shard, role_kind::worker, role_kind::keeper})
    if (protocol::to_string(kind) == word) return kind;
  return std::nullopt;
}

} // namespace dlrun::runtime
