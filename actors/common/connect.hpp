/// How a role makes itself reachable and reaches others, without ever blocking its actor.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/common/role_context.hpp"

#include <caf/io/all.hpp>
#include <fmt/core.h>
#include <set>

namespace dlrun::common {

/// Connecting and publishing are answered by the I/O thread of this process, unless the peer is
/// frozen.
inline constexpr auto connect_deadline = std::chrono::seconds(5);
/// Only processes of this host connect in this version; there is no listener on other addresses.
inline constexpr auto loopback = "127.0.0.1";

/// Makes the role of `self` reachable: on a free loopback port, or, when all roles share the
/// process, by the local table. Then calls `done(endpoint)` on the actor; on failure the actor
/// quits with the error.
template <class Handle, class Self, class Job, class Done>
void publish(Self* self, const basic_role_context<Job>& context, std::string tensor_address, Done done) {
  const auto& job = *context.job;
  auto handle = caf::actor_cast<caf::strong_actor_ptr>(self);
  protocol::endpoint at{loopback, 0, job.process, std::move(tensor_address)};
  context.local->remember(context.role, context.self.incarnation, handle);
  if (job.spec.cluster().placement() == "threads") {
    done(at);
    return;
  }
  const auto interface = self->system().message_types(caf::detail::type_list<Handle>{});
  self->request(self->system().middleman().actor_handle(), connect_deadline, caf::publish_atom_v,
                std::uint16_t{0}, handle, interface, std::string{loopback}, false)
      .then(
          [at, done](std::uint16_t port) mutable {
            at.port = port;
            done(at);
          },
          [self, log = context.log](const caf::error& why) {
            log->critical("publish-failed: cannot listen on loopback: {}", to_string(why));
            self->quit(why);
          });
}

/// Finds the start `incarnation` of `role` at `at`. Exactly one of the handlers runs, on the actor.
/// The handle may belong to an older start on a reused port: the answer to the first message tells,
/// since it carries the incarnation.
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
  const auto expected = self->system().message_types(caf::detail::type_list<Handle>{});
  self->request(self->system().middleman().actor_handle(), connect_deadline, caf::connect_atom_v, at.host,
                at.port)
      .then(
          [=](const caf::node_id&, const caf::strong_actor_ptr& found, const std::set<std::string>& offered) {
            if (!found)
              failed(fmt::format("nothing is published at {}:{}", at.host, at.port));
            else if (!self->system().assignable(offered, expected))
              failed(fmt::format("{}:{} does not speak as a {}", at.host, at.port,
                                 protocol::to_string(role.kind)));
            else
              done(caf::actor_cast<Handle>(found));
          },
          [=](const caf::error& why) {
            failed(fmt::format("cannot connect to {} at {}:{}: {}", protocol::to_string(role), at.host,
                               at.port, to_string(why)));
          });
}

} // namespace dlrun::common
