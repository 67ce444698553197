/// Which hosts may join a job by themselves.
#pragma once

#include "actors/agent/enrolment/admission.hpp"
#include "actors/agent/host_roster.hpp"
#include "actors/agent/placement.hpp"
#include "base/job_hosts.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <map>
#include <string>

namespace dlrun::agent {

struct admission_rules {
  std::string root{}; ///< name of the root's host
  /// The job begins when so many hosts are there, the root's included, and of these so many that
  /// are neither preemptible nor for workers; so many may be.
  std::size_t hosts_min = 1;
  std::size_t hosts_min_staying = 0;
  std::size_t hosts_max = base::job_hosts_max;
  std::map<std::string, std::string> addresses{}; ///< numbers, of all hosts of the list
  std::string way_to_join{};                      ///< for people; "" where no host may join
};

/// A host that wants to join.
struct arriving_host {
  std::string name;
  std::string address;    ///< number
  std::uint32_t cpus = 0; ///< 0: those that its agent tells of
  std::string pod{};      ///< uid, of one of Kubernetes; "": it does not say
};

/// Whether a host that has proved itself may be one of the job's at all. Thread-safe. @returns
/// bad_usage with the reason, or in_use where it may try again later.
using join_check = std::function<result<void>(const arriving_host& who)>;

/// One that had joined when an earlier root of the job was killed, at its place among the hosts.
struct returning_host {
  arriving_host who;
  std::uint32_t index = 0;
};

/// Pure: one agent a name and an address, and no more hosts than the list of hosts wants. A host
/// has its place among those of the job for good.
class host_admission {
public:
  /// @param listed how many hosts the list has, the root's included
  host_admission(admission_rules rules, std::size_t listed)
      : rules_{std::move(rules)}
      , listed_{listed} {}

  /// Lets it in: `roster` waits for its agent from now on. @returns bad_usage with the reason, or
  /// in_use where it may try again later.
  result<admission> admit(const arriving_host& who, host_roster& roster, protocol::time_point now);
  /// The same of one that an earlier root let in: `roster` waits for its agent as it is. @returns
  /// whether it is, which takes a list that lets hosts join, and has its name and place for nobody
  /// else.
  bool await_return(const returning_host& one, host_roster& roster);
  /// Why the job does not begin yet, though all hosts of the list are there; "": it may.
  std::string awaited(const host_roster& roster, const placement& places) const;
  /// Number of the host of the list, or of the agent that was let in last under this name; "" of
  /// one that never came.
  std::string address_of(const std::string& host) const;

private:
  result<void> check(const arriving_host& who, const host_roster& roster) const;
  std::uint32_t next_place() const;

  admission_rules rules_;
  std::size_t listed_;
  std::map<std::string, std::uint32_t> places_; ///< of those that ever joined
};

} // namespace dlrun::agent
