/// The option of verbs that read a list of hosts.
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

} // namespace dlrun::cli
