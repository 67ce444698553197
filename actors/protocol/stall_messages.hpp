/// Whom training waits for, once it stands still.
#pragma once

#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string_view>

namespace dlrun::protocol {

/// What a role is at that others wait for.
enum class stall_phase : std::uint8_t {
  gone,       ///< it is not there: its process has ended, or has not come yet
  silent,     ///< it is not heard, and nobody has seen it end
  connecting, ///< a worker that has not heard a PS shard say where that stands
  fetching,   ///< a worker that lacks parameters of a PS shard
  computing,  ///< a worker in a slot: reads its records, computes their gradient
  pushing,    ///< a worker that has computed; a PS shard lacks its gradient
  evaluating, ///< a worker whose result decides how training goes on
  logging,    ///< a PS shard whose disk, or its copy, is behind
  updating,   ///< a PS shard that has all gradients of the step
};

constexpr std::string_view to_string(stall_phase phase) {
  switch (phase) {
  case stall_phase::gone: return "gone";
  case stall_phase::silent: return "silent";
  case stall_phase::connecting: return "connecting";
  case stall_phase::fetching: return "fetching";
  case stall_phase::computing: return "computing";
  case stall_phase::pushing: return "pushing";
  case stall_phase::evaluating: return "evaluating";
  case stall_phase::logging: return "logging";
  case stall_phase::updating: return "updating";
  }
  return "unknown";
}

/// What a worker is at, of its open step.
struct worker_activity {
  stall_phase phase = stall_phase::connecting; ///< connecting to pushing
  slot_id slot{};                              ///< computing: the first one of those in hand
  ps_shard_id ps_shard{};                      ///< connecting, fetching: whom it waits for

  bool operator==(const worker_activity&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_activity& x) {
    return f(x.phase, x.slot, x.ps_shard);
  }
};

/// Dispatcher -> coordinator -> agent: no version has been made for long, and that is whom it waits
/// for. Again when it is somebody else, or something else, and when it is over.
struct stall {
  version_id version{}; ///< the newest one that every PS shard has
  role_name role{};
  dlrun::incarnation incarnation{};        ///< 0: of no start that is known
  stall_phase phase = stall_phase::silent; ///< what `role` is at
  bool has_slot = false;                   ///< of a worker, but for evaluating
  slot_id slot{};                          ///< of the step from `version`, that it computes, or that lacks
  bool has_ps_shard = false;               ///< connecting, fetching, pushing
  ps_shard_id ps_shard{};                  ///< whom `role` has to do with
  std::uint64_t after_us = 0;              ///< since the version was made, microseconds
  bool is_over = false;                    ///< a version was made; the rest is as it was said last

  /// Whether both blame the same for the same.
  bool is_same(const stall& other) const {
    return version == other.version && role == other.role && incarnation == other.incarnation &&
           phase == other.phase && has_slot == other.has_slot && slot == other.slot;
  }

  template <class Inspector>
  friend auto inspect(Inspector& f, stall& x) {
    return f(x.version, x.role, x.incarnation, x.phase, x.has_slot, x.slot, x.has_ps_shard, x.ps_shard,
             x.after_us, x.is_over);
  }
};

} // namespace dlrun::protocol
