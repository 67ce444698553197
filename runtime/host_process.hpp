/// The process of a host's agent, `dlrun agent`.
#pragma once

#include <chrono>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <optional>
#include <string>

namespace dlrun::runtime {

/// Reads from `input` what it is to be, decodes the data of the job and compares it with the
/// root's, joins the root, and runs the roles that it orders; until it is dismissed, is asked to
/// leave by a SIGTERM, or has had no link to the root, or no answer of it, for longer than a grace.
/// Blocks. Whatever it started ends with it.
/// @returns bad_usage when this is not the program, data or folder for that; role_lost when the job
/// goes on without it, or is out of reach.
result<void> run_host_agent(int input);

/// A host that joins a job by itself.
struct joining_host {
  std::string root;       ///< "HOST:PORT", where the root listens
  std::string token_file; ///< "-": standard input
  std::string key_file;   ///< in place of that; "": none
  /// How long it tries to reach the root; nothing: with a key as long as it takes, with a token
  /// once.
  std::optional<std::chrono::seconds> wait;
  std::string name;       ///< "": that of the host
  std::string address;    ///< number; "": that from which the root is reached
  std::string folder;     ///< for folders of runs; "": as the root chooses
  std::uint32_t cpus = 0; ///< 0: those that this process may use
};

/// Enrols with a token or a key, and goes on as run_host_agent() does. `tell` gets what is worth a
/// line. @returns errors as that, and bad_usage when the token or key cannot be used, with the
/// root's words; system, timed_out, protocol, in_use when the root cannot be reached in time, or
/// does not take the host yet; interrupted when this process was asked to end meanwhile, and with a
/// key also when the host was asked to leave or the job was stopped: it may join again, which
/// whoever starts it has to be able to tell from the end of the job.
result<void> join_job(const joining_host& host, const std::function<void(const std::string&)>& tell);

} // namespace dlrun::runtime
