/// The hosts that a run may use, and which of them this is.
#pragma once

#include "proto/hosts_file.pb.h"
#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::runtime {

struct hosts_plan {
  std::string file; ///< as the user called it
  spec::HostsFile hosts;
  int here = 0;                     ///< place of this host among them
  std::vector<std::string> numbers; ///< of the address of each

  const spec::HostSpec& own() const { return hosts.hosts(here); }
  /// Whether the list lets workers use GPUs of this host.
  bool has_own_gpus() const;
  const std::string& number_of(int place) const { return numbers.at(static_cast<std::size_t>(place)); }
  const std::string& own_number() const { return number_of(here); }
  /// Words of the command that starts the agent of a host; the first is the path of a program on
  /// this host.
  std::vector<std::string> command_for(const spec::HostSpec& host) const;
  std::string starter_program; ///< full path of the first word of `hosts.start`
  std::string agent_program;   ///< path of dlrun on the others
};

/// Reads the list and finds the host whose address is one of this machine's.
/// @param self the address for which "self" stands in the list; "": the only one of this machine
/// @returns bad_spec as job::read_hosts(); bad_usage when no host or several are this one, the
/// number cannot be that of `self`, or the command that starts agents is not there.
result<hosts_plan> plan_hosts(const std::filesystem::path& file, const std::string& self = "");

/// The same; nothing when `file` is "", which has no use for the others.
/// @param machine on which this host is, whatever the list says; "": as that says
result<std::optional<hosts_plan>> plan_hosts_if_named(const std::string& file, const std::string& self = "",
                                                      const std::string& machine = "");

/// With so many hosts, this one included, a job begins at least; 1 where no list is named.
std::size_t hosts_at_least(const std::optional<hosts_plan>& plan);

/// Whether workers may use GPUs of this host: no list says that it has none, or takes no workers.
bool has_gpus_here(const std::optional<hosts_plan>& plan);
/// Whether `cluster.device: auto` of a new run is settled by the GPUs of this host, or, of another
/// device, has_gpus_here().
bool settles_gpus_here(const std::optional<hosts_plan>& plan, const spec::JobSpec& job);

/// Whether the coordinator of `job` may run on any host of the list.
bool coordinator_moves(const hosts_plan& plan, const spec::JobSpec& job);

/// Whether an IPv4 address, with a port or without, is one that no other host reaches.
inline bool is_loopback(std::string_view number) { return number.starts_with("127."); }

/// The IPv4 addresses of this machine's interfaces.
std::set<std::string> own_numbers();

/// Folder in which a host keeps its part of a run that begins: the one that the list names, else
/// one with the name of the run folder.
std::string folder_for_new_run(const spec::HostSpec& host, const std::filesystem::path& run_dir);

/// Cores that this process may use.
std::uint32_t usable_cpus();

} // namespace dlrun::runtime
