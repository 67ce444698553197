#include "runtime/thread_launcher.hpp"

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
    events.exited(order.role, order.self, {clean ? "ended" : "ended: " + to_string(why)});
  });
}

void thread_launcher::stop(const protocol::role_name& role, const protocol::fence& self, bool kill) {
  const std::scoped_lock lock{running_->mutex};
  if (const auto found = running_->actors.find({role, self.incarnation}); found != running_->actors.end())
    caf::anon_send_exit(found->second, kill ? caf::exit_reason::kill : caf::exit_reason::user_shutdown);
}

} // namespace dlrun::runtime
