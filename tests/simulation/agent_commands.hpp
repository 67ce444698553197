/// The commands by which the root starts the agents of other hosts, as over ssh.
#pragma once

#include "tests/simulation/process.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace dlrun::simulation {

/// A command fails where the host is down or out of reach; it waits for the folder while another
/// agent has it; it ends some time after the agent that it has started.
class agent_commands {
public:
  using ended = std::function<void(std::uint32_t host, std::uint64_t attempt, const std::string& why)>;

  agent_commands(world& where, process& root, std::uint64_t number, ended tell)
      : world_(where)
      , root_(root)
      , number_(number)
      , tell_(std::move(tell)) {}

  void run(std::uint32_t host, std::uint64_t attempt);
  /// What it has started goes on.
  void kill(std::uint32_t host, std::uint64_t attempt);
  void tick();

private:
  struct command {
    std::uint64_t attempt = 0;
    process* agent = nullptr;                         ///< that it has started
    std::optional<protocol::time_point> agent_gone{}; ///< since when that is
  };

  void try_to_start(std::uint32_t host, std::uint64_t attempt, protocol::time_point due);
  void end(std::uint32_t host, const std::string& why);

  world& world_;
  process& root_;
  std::uint64_t number_;
  ended tell_;
  std::map<std::uint32_t, command> running_;
};

} // namespace dlrun::simulation
