/// `--probe-listen` of the verbs that run for as long as a job.
#pragma once

#include "base/probe_server.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

namespace dlrun::cli {

inline CLI::Option* add_probe_listen(CLI::App& command, std::string& listen) {
  return command.add_option("--probe-listen", listen,
                            "ADDRESS:PORT at which GET /livez and GET /readyz tell by HTTP whether this "
                            "process lives and is in its "
                            "place in the job, and nothing else (default: none)");
}

/// Null where `listen` is "". @returns bad_usage
inline result<std::unique_ptr<base::probe_server>> start_probes(const std::string& listen,
                                                                std::shared_ptr<const base::pulse> pulse) {
  if (listen.empty()) return nullptr;
  return base::probe_server::start(listen, std::move(pulse)).map_error([](error why) {
    why.message = "--probe-listen: " + why.message;
    return why;
  });
}

} // namespace dlrun::cli
