/// How a worker or PS shard enters the job: connect to the coordinator, join, and try again until
/// answered.
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/connect.hpp"
#include "actors/common/job_context.hpp"

#include <unistd.h>

namespace dlrun::common {

/// How long a join may stay unanswered before it is repeated. A frozen coordinator answers when it
/// goes on.
inline constexpr auto join_deadline = std::chrono::seconds(2);
inline constexpr auto join_retry = std::chrono::milliseconds(50);

/// `Handle` = typed handle of the joining role. `done(reply, dispatcher)` runs once on the actor,
/// with the coordinator's answer; not at all when `context` has learnt of a newer coordinator
/// meanwhile.
template <class Handle, class Self, class Done>
void join_coordinator(Self* self, const role_context& context, const protocol::endpoint& at, Done done) {
  const auto joining = context.coordinator_incarnation;
  const auto again = [self, &context, at, done, joining] {
    if (context.coordinator_incarnation != joining) return;
    post_later(self, caf::actor_cast<Handle>(self), join_retry, [self, &context, at, done, joining] {
      if (context.coordinator_incarnation == joining) join_coordinator<Handle>(self, context, at, done);
    });
  };
  const auto ask_coordinator = [self, &context, at, done, again,
                                joining](const protocol::coordinator_actor& coordinator) {
    const protocol::join message{
        context.role,   context.self,  ::getpid(), at, context.job->build.fingerprint,
        context.device, context.opened};
    ask_with(
        self, coordinator, join_deadline, message, caf::actor_cast<Handle>(self),
        [&context, done, joining](const protocol::join_reply& reply,
                                  const protocol::data_dispatcher_actor& dispatcher) {
          if (context.coordinator_incarnation == joining) done(reply, dispatcher);
        },
        [&context, again](const caf::error& why) {
          context.log->info("join-unanswered: {}; trying again", to_string(why));
          again();
        });
  };
  connect<protocol::coordinator_actor>(self, context, {protocol::role_kind::coordinator, 0}, joining,
                                       *context.coordinator, ask_coordinator,
                                       [&context, again](const std::string& why) {
                                         context.log->info("join-failed: {}; trying again", why);
                                         again();
                                       });
}

/// Joins the coordinator at `location` if it is a newer start than the one joined before.
template <class Handle, class Self, class Done>
void follow_coordinator(Self* self, role_context& context, const protocol::coordinator_location& location,
                        const protocol::endpoint& at, Done done) {
  if (location.incarnation <= context.coordinator_incarnation) return;
  context.log->info("coordinator-moved: joining incarnation {}", location.incarnation);
  context.coordinator = location.at;
  context.coordinator_incarnation = location.incarnation;
  join_coordinator<Handle>(self, context, at, done);
}

} // namespace dlrun::common
