/// What a launcher tells, brought from its threads into an agent's core.
#pragma once

#include "actors/agent/role_launcher.hpp"
#include "actors/protocol/time.hpp"

namespace dlrun::agent {

/// Each event runs on the actor that `post` (a common::poster) posts to, at `now()` there, and what
/// `core` answers goes to `carry_out`. The actor outlives what it was posted.
template <class Post, class Core, class Now, class CarryOut>
launch_events posted_events(Post post, Core& core, Now now, CarryOut carry_out) {
  return {.started =
              [post, &core, now, carry_out](const auto& role, const auto& self, std::int32_t pid) {
                post([&core, now, carry_out, role, self, pid] {
                  carry_out(core.on_started(role, self, pid, now()));
                });
              },
          .start_failed =
              [post, &core, now, carry_out](const auto& role, const auto& self, const error& why) {
                post([&core, now, carry_out, role, self, why] {
                  carry_out(core.on_start_failed(role, self, why, now()));
                });
              },
          .exited =
              [post, &core, now, carry_out](const auto& role, const auto& self, const role_end& how) {
                post([&core, now, carry_out, role, self, how] {
                  carry_out(core.on_exited(role, self, how, now()));
                });
              }};
}

} // namespace dlrun::agent
