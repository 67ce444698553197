/// The verbs of `dlrun`, one file each. A verb adds its options to the command line and says what
/// it does; its return value is the exit code (docs/cli.md).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace dlrun::cli {

/// Runs after the command line was read; returns the exit code.
using verb = std::function<int()>;

/// Each sets `chosen` when its subcommand is given.
void add_train(CLI::App& app, verb& chosen);
void add_doctor(CLI::App& app, verb& chosen);
void add_manifests(CLI::App& app, verb& chosen);
void add_submit(CLI::App& app, verb& chosen);
void add_delete(CLI::App& app, verb& chosen);
void add_agent(CLI::App& app, verb& chosen);
void add_resume(CLI::App& app, verb& chosen);
void add_attach(CLI::App& app, verb& chosen);
void add_validate(CLI::App& app, verb& chosen);
void add_status(CLI::App& app, verb& chosen);
void add_scale(CLI::App& app, verb& chosen);
void add_drain(CLI::App& app, verb& chosen);
void add_token(CLI::App& app, verb& chosen);
void add_stop(CLI::App& app, verb& chosen);
void add_export(CLI::App& app, verb& chosen);
void add_evaluate(CLI::App& app, verb& chosen);
void add_predict(CLI::App& app, verb& chosen);
void add_logs(CLI::App& app, verb& chosen);
void add_events(CLI::App& app, verb& chosen);
void add_explain(CLI::App& app, verb& chosen);
void add_init(CLI::App& app, verb& chosen);
void add_completion(CLI::App& app, verb& chosen);
void add_version(CLI::App& app, verb& chosen);

} // namespace dlrun::cli
