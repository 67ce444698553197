#include "cli/complain.hpp"
#include "cli/verbs.hpp"
#include "runtime/host_process.hpp"

#include <unistd.h>

namespace dlrun::cli {
namespace {

int run_agent() {
  const auto ended = runtime::run_host_agent(STDIN_FILENO);
  return ended ? static_cast<int>(job::exit_code::success) : complain(ended.error());
}

} // namespace

void add_agent(CLI::App& app, verb& chosen) {
  auto* command = app.add_subcommand(
      "agent", "Run roles of a job on this host: what 'train' and 'resume' start on the hosts of --hosts");
  command->footer(
      "It reads on its standard input what to do, and is of no use otherwise. It ends with its job, "
      "or when it\nhas had no link to it, or no answer, for 10 s, and leaves no process behind.");
  command->callback([&chosen] { chosen = [] { return run_agent(); }; });
}

} // namespace dlrun::cli
