/// Options that say what this host is to others of a job.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dlrun::cli {

/// `--address NUMBER`, for "self" in the list.
inline CLI::Option* add_address(CLI::App& command, std::string& address) {
  return command.add_option("--address", address,
                            "Number of this host for which 'self' stands in the list of hosts (default: the "
                            "only one that it has)");
}

/// `--machine NAME`.
inline CLI::Option* add_machine(CLI::App& command, std::string& machine) {
  return command.add_option(
      "--machine", machine,
      "What this host runs on, as a node of a cluster: a copy is on another machine than its "
      "PS shard while there is one (default: a machine of its own)");
}

} // namespace dlrun::cli
