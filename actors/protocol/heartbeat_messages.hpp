/// Signs of life of roles, and what the agent answers.
#pragma once

#include "actors/protocol/copy_word.hpp"
#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// The keeper of one copy, as the agent knows it.
struct keeper_place {
  dlrun::incarnation incarnation{}; ///< of its start; 0: none runs
  endpoint at{};                    ///< once it can be reached
  bool counts = false;              ///< a start of the PS shard has said so, and it has run ever since

  bool operator==(const keeper_place&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, keeper_place& x) {
    return f(x.incarnation, x.at, x.counts);
  }
};

/// What the agent tells a PS shard of its copies.
struct keeper_places {
  bool is_known = false;           ///< false to who is not the start in hand: nothing is said
  bool moves = false;              ///< the PS shard is to end, for its next start to be where a copy is (R37)
  std::vector<keeper_place> all{}; ///< by copy

  bool operator==(const keeper_places&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, keeper_places& x) {
    return f(x.is_known, x.moves, x.all);
  }
};

/// Agent -> role, the answer to a heartbeat: where the coordinator is now. A role that joined an
/// older start joins this one. The coordinator itself, where no connection leads to it any more, is
/// answered with 0, and joins again.
struct coordinator_location {
  dlrun::incarnation incarnation; ///< 0: none is up
  endpoint at;
  keeper_places keepers{}; ///< to a PS shard whose store has copies

  template <class Inspector>
  friend auto inspect(Inspector& f, coordinator_location& x) {
    return f(x.incarnation, x.at, x.keepers);
  }
};

/// Role -> its agent, periodic: a sign of life, and what `dlrun status` shows.
struct heartbeat {
  role_name role;
  fence self;
  std::string state{};            ///< one word: starting, training, evaluating, moving, disk-full, done
  std::uint64_t step = 0;         ///< steps applied (PS shard) or the open step (worker)
  std::uint64_t durable_step = 0; ///< of a PS shard: newest version that its successor would find on the disk
  bool has_metrics = false;
  training_metrics metrics{};
  std::uint32_t slots = 0;                ///< of a worker: of each step that it has a lease for
  std::uint64_t slots_per_kilosecond = 0; ///< that it computes, as measured; 0: not yet
  store_standing store{};                 ///< of a PS shard or keeper
  version_set restorable{};               ///< from it
  copies_word copies{};                   ///< of a PS shard whose store has copies, or of a keeper
  endpoint at{};                          ///< of a keeper
  known_coordinator coordinator{};        ///< the newest that it has joined, or joins; 0: none, or a keeper

  template <class Inspector>
  friend auto inspect(Inspector& f, heartbeat& x) {
    return f(x.role, x.self, x.state, x.step, x.durable_step, x.has_metrics, x.metrics, x.slots,
             x.slots_per_kilosecond, x.store, x.restorable, x.copies, x.at, x.coordinator);
  }
};

} // namespace dlrun::protocol
