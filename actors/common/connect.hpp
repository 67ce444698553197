/// How a role makes itself reachable and reaches others, without ever blocking its actor.
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/job_facts.hpp"
#include "actors/common/role_context.hpp"

#include <fmt/core.h>

namespace dlrun::common {

/// Makes the role of `self` reachable: by the link of its process, and by the table of those that
/// share the process. @returns where.
template <class Handle, class Self, class Job>
protocol::endpoint publish(Self* self, const basic_role_context<Job>& context, std::string tensor_address) {
  const auto handle = caf::actor_cast<Handle>(self);
  context.local->remember(context.role, context.self.incarnation,
                          caf::actor_cast<caf::strong_actor_ptr>(handle));
  if (context.link == nullptr) return {{}, context.job->process, std::move(tensor_address)};
  context.link->publish(handle);
  return {context.link->address(), context.job->process, std::move(tensor_address)};
}

/// Finds the start `incarnation` of `role` at `at`, and no other. Exactly one of the handlers runs,
/// on the actor.
template <class Handle, class Self, class Job, class Done, class Failed>
void connect(Self* self, const basic_role_context<Job>& context, const protocol::role_name& role,
             dlrun::incarnation incarnation, const protocol::endpoint& at, Done done, Failed failed) {
  if (at.process == context.job->process) {
    if (const auto found = context.local->find(role, incarnation))
      done(caf::actor_cast<Handle>(found));
    else
      failed(fmt::format("{} with incarnation {} is not in this process", protocol::to_string(role),
                         incarnation));
    return;
  }
  if (context.link == nullptr)
    return failed(fmt::format("{} is in no process of this run", protocol::to_string(role)));
  context.link->template connect<Handle>(
      at.control, {role, incarnation},
      [back = poster{caf::actor_cast<caf::actor>(self)}, done, failed](const result<Handle>& found) {
        back([found, done, failed] {
          if (found)
            done(*found);
          else
            failed(found.error().message);
        });
      });
}

} // namespace dlrun::common
