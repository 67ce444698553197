/// How a worker or PS shard enters the job: connect to the coordinator, join, and try again until answered.
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/connect.hpp"

#include <unistd.h>

namespace dlrun::common {

/// How long a join may stay unanswered before it is repeated. A frozen coordinator answers when it goes on.
inline constexpr auto join_deadline = std::chrono::seconds(2);
inline constexpr auto join_retry = std::chrono::milliseconds(50);

/// `Handle` = typed handle of the joining role. `done(reply, dispatcher)` runs once on the actor, with the
/// coordinator's answer.
template <class Handle, class Self, class Done>
void join_coordinator(Self* self, const role_context& context, const protocol::endpoint& at, Done done) {
  const auto again = [self, &context, at, done] {
    self->delayed_send(
        caf::actor_cast<Handle>(self), join_retry,
        protocol::continuation{std::make_shared<const std::function<void()>>(
            [self, &context, at, done] { join_coordinator<Handle>(self, context, at, done); })});
  };
  const auto ask_coordinator = [self, &context, at, done,
                                again](const protocol::coordinator_actor& coordinator) {
    const protocol::join message{context.role, context.self, ::getpid(), at, context.job->fingerprint};
    ask_with(
        self, coordinator, join_deadline, message, caf::actor_cast<Handle>(self),
        [done](const protocol::join_reply& reply, const protocol::data_dispatcher_actor& dispatcher) {
          done(reply, dispatcher);
        },
        [&context, again](const caf::error& why) {
          context.log->info("join-unanswered: {}; trying again", to_string(why));
          again();
        });
  };
  connect<protocol::coordinator_actor>(self, *context.job, {protocol::role_kind::coordinator, 0},
                                       context.coordinator_incarnation, *context.coordinator, ask_coordinator,
                                       [&context, again](const std::string& why) {
                                         context.log->info("join-failed: {}; trying again", why);
                                         again();
                                       });
}

} // namespace dlrun::common
