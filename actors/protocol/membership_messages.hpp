/// Who takes part: between roles and the coordinator, or the agent.
#pragma once

#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/status_messages.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// Role -> agent and role -> coordinator, once after its start and again until answered.
struct join {
  role_name role;
  fence self;
  std::int32_t pid = 0;
  endpoint at;
  std::string fingerprint; ///< build, libraries, processor, threads: hosts that differ would change bits (I2)
  std::string device{};    ///< what a worker computes on, "cpu" or a GPU and its libraries; of others empty
  opened_store opened{};   ///< of a PS shard

  template <class Inspector>
  friend auto inspect(Inspector& f, join& x) {
    return f(x.role, x.self, x.pid, x.at, x.fingerprint, x.device, x.opened);
  }
};

/// Answer to `join`. A refused role ends itself.
struct join_reply {
  bool accepted = false;
  std::string reason; ///< why it was refused
  /// Of an agent: the random number of its process, which another root has when it takes over the
  /// roles that an earlier one left (R35).
  std::uint64_t agent = 0;
  bool store_is_short = false; ///< of a PS shard: it lacks what it had acknowledged under its identity (R24)

  template <class Inspector>
  friend auto inspect(Inspector& f, join_reply& x) {
    return f(x.accepted, x.reason, x.agent, x.store_is_short);
  }
};

/// One role as the coordinator knows it. `self.incarnation` is the newest one issued to a start;
/// `joined` says that `at` is valid.
struct directory_entry {
  role_name role;
  dlrun::incarnation incarnation;
  bool joined = false;
  endpoint at;
  std::uint64_t token = 0; ///< of that start: who speaks under the incarnation must know it

  bool operator==(const directory_entry&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, directory_entry& x) {
    return f(x.role, x.incarnation, x.joined, x.at, x.token);
  }
};

/// Coordinator -> every joined role (R4): newest incarnation and address of every role. Highest
/// `sequence` wins.
struct directory {
  dlrun::incarnation coordinator;
  std::uint64_t sequence = 0;
  std::vector<directory_entry> entries;
  std::vector<suspect_slot> suspects{}; ///< sorted (R18)

  template <class Inspector>
  friend auto inspect(Inspector& f, directory& x) {
    return f(x.coordinator, x.sequence, x.entries, x.suspects);
  }
};

} // namespace dlrun::protocol
