/// The process of a host's agent, `dlrun agent`.
#pragma once

#include "base/pulse.hpp"

#include <chrono>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::runtime {

/// Runs the agent of a host: reads its bundle from `input`, decodes the data of the job and
/// compares it with the root's, connects to the root, and runs the roles that the root orders. It
/// ends when the root dismisses it, when a SIGTERM asks it to leave, or when it has had no link to
/// the root, or no answer from it, for longer than a grace. Blocks. Everything that it started ends
/// with it.
/// @returns bad_usage when this program, data or folder does not fit the job; role_lost when the
/// job goes on without this host, or is out of reach.
result<void> run_host_agent(int input);

/// A host that joins a job by itself.
struct joining_host {
  std::string root;       ///< "HOST:PORT", where the root listens
  std::string token_file; ///< "-": standard input
  std::string key_file;   ///< in place of that; "": none
  /// How long it tries to reach the root. Nothing: as long as it takes with a key, once with a
  /// token.
  std::optional<std::chrono::seconds> wait;
  std::string name;         ///< "": that of the host
  std::string address;      ///< number; "": that from which the root is reached
  std::string folder;       ///< for folders of runs; "": as the root chooses
  std::uint32_t cpus = 0;   ///< 0: those that this process may use
  bool preemptible = false; ///< it may go at short notice
  std::string takes{};      ///< as in a list of hosts; "": any
  std::string machine{};    ///< on which it is; "": one of its own
  std::string pod{};        ///< uid of its pod; "": it is none, or does not say
  /// Of this process, which is ready once its agent has a link to the root.
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>();
};

struct host_failure {
  error why;
  bool has_other_bits = false; ///< the host; it is bad_usage too
};

/// Lines for the user.
struct join_words {
  std::function<void(const std::string&)> tell;
  /// That it has tried to join for long, from where to where, and what came of it: after 30 s, then
  /// more and more rarely.
  std::function<void(const std::string&)> warn;
  /// What it is at, for whoever reads its log.
  std::function<void(const std::string&)> note;
};

/// Enrols with a token or a key, then does what run_host_agent() does. @returns errors as
/// run_host_agent(); bad_usage, with the root's words, when the token or key cannot be used;
/// system, timed_out, protocol or in_use when the root cannot be reached in time, or does not take
/// the host yet; interrupted when this process was asked to end meanwhile. A host that would
/// compute other bits than the job is told as such. With a key it also returns interrupted when the
/// host was asked to leave or the job was stopped: the host may join again, and its starter must be
/// able to tell that from the end of the job.
tl::expected<void, host_failure> join_job(const joining_host& host, const join_words& words);

} // namespace dlrun::runtime
