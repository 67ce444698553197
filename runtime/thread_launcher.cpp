#include "runtime/thread_launcher.hpp"

#include "actors/common/lasting_end.hpp"
#include "actors/common/role_log.hpp"
#include "runtime/role_host.hpp"

#include <unistd.h>

namespace dlrun::runtime {

void thread_launcher::start(const agent::launch_order& order, const agent::launch_events& events) {
  common::role_context context{.role = order.role,
                               .self = order.self,
                               .job = job_,
                               .local = local_,
                               .agent = agent_,
                               .log = common::make_role_log(*job_, order.role, order.self.incarnation)};
  if (order.coordinator) {
    context.coordinator = order.coordinator->at;
    context.coordinator_incarnation = order.coordinator->self.incarnation;
  }
  const auto actor = start_role(system_, std::move(context));
  const start_key key{order.role, order.self.incarnation};
  {
    const std::scoped_lock lock{running_->mutex};
    running_->actors[key] = actor;
  }
  events.started(order.role, order.self, ::getpid());
  actor->attach_functor([running = running_, local = local_, key, order, events](const caf::error& why) {
    {
      const std::scoped_lock lock{running->mutex};
      running->actors.erase(key);
    }
    local->forget(order.role, order.self.incarnation);
    const bool clean = !why || why == caf::exit_reason::user_shutdown;
    events.exited(order.role, order.self,
                  {.cause = clean ? "ended" : "ended: " + to_string(why),
                   .is_lasting = why == common::lasting_end,
                   .exited = why != caf::exit_reason::kill,
                   .left = clean && order.role.kind == protocol::role_kind::worker});
  });
}

void thread_launcher::stop(const protocol::role_name& role, const protocol::fence& self,
                           protocol::stop_how how) {
  const std::scoped_lock lock{running_->mutex};
  const auto found = running_->actors.find({role, self.incarnation});
  if (found == running_->actors.end()) return;
  switch (how) {
  case protocol::stop_how::leave: return ask_to_leave(role.kind, found->second);
  case protocol::stop_how::end: return caf::anon_send_exit(found->second, caf::exit_reason::user_shutdown);
  case protocol::stop_how::kill: return caf::anon_send_exit(found->second, caf::exit_reason::kill);
  }
}

} // namespace dlrun::runtime
