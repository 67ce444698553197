/// Between the agent, which decides what runs, and the agents of other hosts, which run it. The
/// rules of messages.hpp hold. Orders name the boot of the host's agent that they are for: one that
/// comes late means a process that is gone, and has no effect (R24).
#pragma once

#include "actors/protocol/endpoint.hpp"
#include "actors/protocol/host_takes.hpp"
#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/timeline.hpp"

#include <dlrun/error.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// A store of a PS shard, as a host found it in its folder. Of one that cannot be read all is 0 but
/// the shard: it is better than none, since the PS shard that opens it says what is wrong with it.
struct held_store {
  ps_shard_id shard{};
  dlrun::incarnation opener{}; ///< who opened it last
  timeline_id timeline{};
  step_id end{};              ///< the newest version that it may restore
  std::uint64_t identity = 0; ///< 0: it gets another one when it is opened (R24)
  version_id floor{};         ///< what is below may have been dropped

  template <class Inspector>
  friend auto inspect(Inspector& f, held_store& x) {
    return f(x.shard, x.opener, x.timeline, x.end, x.identity, x.floor);
  }
};

/// A start of a role that runs.
struct running_start {
  role_name role;
  fence self;
  std::int32_t pid = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, running_start& x) {
    return f(x.role, x.self, x.pid);
  }
  bool operator==(const running_start&) const = default;
};

/// What a host was given of the job's data, since it had not got it.
struct data_intake {
  std::uint64_t bytes = 0; ///< 0: nothing, it had all of it
  std::uint64_t duration_us = 0;
  std::string from; ///< which hosts gave how much, for people
  std::string why;  ///< what was missing, or other than it should be

  template <class Inspector>
  friend auto inspect(Inspector& f, data_intake& x) {
    return f(x.bytes, x.duration_us, x.from, x.why);
  }
};
/// Longer texts of it are cut.
inline constexpr std::size_t intake_text_bytes_max = 4096;

/// Host agent -> agent, after its start and whenever the link was lost, until answered: here I am.
struct host_joined {
  std::string host;       ///< as the list of hosts calls it
  std::uint64_t boot = 0; ///< random number of this start of the host agent
  std::int32_t pid = 0;
  std::uint32_t cpus = 1;           ///< cores that it may use; 0: it is to leave, and nothing starts there
  std::vector<held_store> stores{}; ///< that are there, but those of PS shards that run
  std::uint64_t root = 0;           ///< random number of the root's process that began this boot
  std::vector<running_start> running{}; ///< what it runs, ordered by that root or one that came back
  std::string data_at{};                ///< its tensor server, which gives the job's data to others; or empty
  data_intake intake{};
  std::uint32_t gpus = 0;   ///< that its workers use; 0: they compute on its cores
  bool preemptible = false; ///< it may go at short notice
  host_takes takes = host_takes::any;
  std::string machine{}; ///< on which it is; "": one of its own

  template <class Inspector>
  friend auto inspect(Inspector& f, host_joined& x) {
    return f(x.host, x.boot, x.pid, x.cpus, x.stores, x.root, x.running, x.data_at, x.intake, x.gpus,
             x.preemptible, x.takes, x.machine);
  }
};

/// What a process shows to those of other hosts, as PEM texts. Made for one start of a role.
struct role_credentials {
  std::string certificate;
  std::string key;              ///< kept out of argv, environment and logs
  std::string authority;        ///< the certificate of whom it trusts
  std::uint32_t lifetime_s = 0; ///< of the certificate, from when it was made

  template <class Inspector>
  friend auto inspect(Inspector& f, role_credentials& x) {
    return f(x.certificate, x.key, x.authority, x.lifetime_s);
  }
};

/// Any process of a job of several hosts -> agent, before its certificate ends: a new one. It is
/// given to whom the connection says the sender is: who asks for another is cut off
/// (names_its_sender).
struct credentials_wanted {
  role_name role;
  dlrun::incarnation incarnation; ///< of a host agent its boot

  template <class Inspector>
  friend auto inspect(Inspector& f, credentials_wanted& x) {
    return f(x.role, x.incarnation);
  }
};

/// Agent -> host agent: start this role. Repeated until there is a report of it; idempotent.
struct start_order {
  std::uint64_t boot = 0;
  role_name role;
  fence self;
  dlrun::incarnation coordinator; ///< whom the role shall join
  endpoint coordinator_at;
  role_credentials credentials{};
  std::uint64_t agent = 0; ///< random number of the root's process

  template <class Inspector>
  friend auto inspect(Inspector& f, start_order& x) {
    return f(x.boot, x.role, x.self, x.coordinator, x.coordinator_at, x.credentials, x.agent);
  }
};

/// How a start is to end; each is stronger than the ones before.
enum class stop_how : std::uint8_t {
  leave, ///< a worker: it hands back what it has in hand (R33)
  end,   ///< in order, at once
  kill
};

/// Agent -> host agent: that start is to end. Repeated until its end is reported; idempotent.
struct stop_order {
  std::uint64_t boot = 0;
  role_name role;
  fence self;
  stop_how how = stop_how::end;

  template <class Inspector>
  friend auto inspect(Inspector& f, stop_order& x) {
    return f(x.boot, x.role, x.self, x.how);
  }
};

/// What became of a start.
enum class start_state : std::uint8_t { running, not_started, ended };

/// Host agent -> agent. Of a start that is over it is repeated until `start_told`.
struct start_report {
  std::string host;
  std::uint64_t boot = 0;
  role_name role;
  fence self;
  start_state state = start_state::running;
  std::int32_t pid = 0;                    ///< running
  std::string why;                         ///< not_started, ended
  error_code code = error_code::role_lost; ///< not_started
  bool is_lasting = false;                 ///< ended: another start would end in the same way
  bool exited = false;                     ///< ended: with an exit code, not by a signal
  bool has_slot = false;                   ///< ended: a worker's, by its own doing in `slot` (R18)
  slot_progress slot{};
  bool was_killed_in = false; ///< ended: it was killed by order, while at `killed_in`
  slot_progress killed_in{};
  bool left = false;        ///< ended: a worker that was asked to leave
  bool has_avoided = false; ///< ended: a worker's, whose GPU `avoided` of the host gets no more workers
  std::uint32_t avoided = 0;
  std::string why_avoided{};

  template <class Inspector>
  friend auto inspect(Inspector& f, start_report& x) {
    return f(x.host, x.boot, x.role, x.self, x.state, x.pid, x.why, x.code, x.is_lasting, x.exited,
             x.has_slot, x.slot, x.was_killed_in, x.killed_in, x.left, x.has_avoided, x.avoided,
             x.why_avoided);
  }
};
/// Longer reasons are cut.
inline constexpr std::size_t report_reason_bytes_max = 8192;

/// Agent -> host agent: the end of this start is known; it need not be told again.
struct start_told {
  std::uint64_t boot = 0;
  role_name role;
  fence self;

  template <class Inspector>
  friend auto inspect(Inspector& f, start_told& x) {
    return f(x.boot, x.role, x.self);
  }
};

/// What a worker was seen to compute.
struct worker_sight {
  role_name role;
  fence self;
  std::uint64_t sequence = 0; ///< changes when it begins with something or ends it
  bool has_slot = false;
  slot_progress at{};

  template <class Inspector>
  friend auto inspect(Inspector& f, worker_sight& x) {
    return f(x.role, x.self, x.sequence, x.has_slot, x.at);
  }
};

/// Host agent -> agent, periodic: a sign of life, what its workers are at, and memory of its host.
struct work_report {
  std::string host;
  std::uint64_t boot = 0;
  std::vector<worker_sight> workers;
  std::uint64_t memory_used = 0;  ///< bytes that count against the limit (base::memory_use)
  std::uint64_t memory_limit = 0; ///< bytes; 0: unknown

  template <class Inspector>
  friend auto inspect(Inspector& f, work_report& x) {
    return f(x.host, x.boot, x.workers, x.memory_used, x.memory_limit);
  }
};
/// A message has room for so many; the workers of a host take turns where there are more.
inline constexpr std::size_t reported_workers_max = 512;

/// Agent -> host agent: end, with all that you started.
struct dismissal {
  std::uint64_t boot = 0;
  std::string reason;

  template <class Inspector>
  friend auto inspect(Inspector& f, dismissal& x) {
    return f(x.boot, x.reason);
  }
};

} // namespace dlrun::protocol
