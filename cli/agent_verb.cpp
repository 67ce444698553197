#include "base/host_exit.hpp"
#include "cli/address_option.hpp"
#include "cli/complain.hpp"
#include "cli/probe_option.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"
#include "runtime/host_process.hpp"

#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr std::uint32_t agent_cpus_max = 4096; // as in the list of hosts
constexpr std::uint64_t wait_max_s = 7 * 24 * 3600;

int run_agent(const runtime::joining_host& host, const std::string& probe_listen) {
  if (!host.root.empty() && host.token_file.empty() && host.key_file.empty())
    return complain(
        {error_code::bad_usage,
         fmt::format("--join {}: name what the host proves itself by: --token-file, with a token of 'dlrun "
                     "token', or --key-file, with what 'join.key_file' of the list of hosts names",
                     host.root)});
  constexpr auto success = static_cast<int>(job::exit_code::success);
  if (host.root.empty()) {
    const auto ended = runtime::run_host_agent(STDIN_FILENO);
    return ended ? success : complain(ended.error());
  }
  const auto probes = start_probes(probe_listen, host.pulse);
  if (!probes) return complain(probes.error());
  const auto ended = runtime::join_job(host, {.tell =
                                                  [](const auto& text) {
                                                    say(stdout, "{}\n", text);
                                                    flush(stdout);
                                                  },
                                              .warn = [](const auto& text) { warn(text); },
                                              .note = [](const auto& text) { say(stderr, "{}\n", text); }});
  if (ended) return success;
  const auto code = complain(ended.error().why);
  return ended.error().has_other_bits ? base::other_bits_exit_code : code;
}

/// How it joins, and what it says of itself.
void add_join_options(CLI::App& command, runtime::joining_host& host, std::string& probe_listen) {
  auto* join =
      command.add_option("--join", host.root, "Join the job whose root listens at HOST:PORT (docs/hosts.md)");
  auto* token = command.add_option(
      "--token-file", host.token_file,
      "File with a token of 'dlrun token', which nobody else may read; - is the standard input");
  auto* key =
      command.add_option("--key-file", host.key_file,
                         "File with the key that 'join.key_file' of the list of hosts names, which nobody "
                         "else may read; - is the standard input");
  key->excludes(token);
  auto* wait = command.add_option_function<std::uint64_t>(
      "--wait-s", [&host](const std::uint64_t& s) { host.wait = std::chrono::seconds{s}; },
      "Seconds for which it tries to reach the root, up to a week (default: with a key as long as it takes, "
      "with a token once)");
  wait->check(whole_number(0, wait_max_s));
  auto* name =
      command.add_option("--name", host.name, "What the job is to call this host (default: its name)");
  auto* address = command.add_option(
      "--address", host.address,
      "IPv4 number by which the other hosts reach this one (default: that from which the root is reached)");
  auto* folder = command.add_option(
      "--folder", host.folder,
      "Folder for a folder of the run, for logs and what PS shards keep (default: as the root's)");
  auto* cpus =
      command.add_option("--cpus", host.cpus, "Cores for the job (default: those that this process may use)");
  cpus->check(whole_number(1, agent_cpus_max));
  auto* preemptible = command.add_flag("--preemptible", host.preemptible,
                                       "This host may go at short notice, as a spot instance: PS shards and "
                                       "their copies are on other hosts while there are any");
  auto* takes =
      command.add_option("--takes", host.takes,
                         "Roles that it takes: any, ps_shards (and their copies, but no worker), or "
                         "workers (the others only while no other host is open for them; default: any)");
  takes->check(CLI::IsMember({"any", "ps_shards", "workers"}));
  auto* machine = add_machine(command, host.machine);
  auto* pod = command.add_option("--pod", host.pod,
                                 "Uid of the pod of Kubernetes that this host is: the control pod holds it "
                                 "against what the API server says");
  auto* log_format = add_log_format(command);
  auto* probes = add_probe_listen(command, probe_listen);
  for (auto* one :
       {token, key, wait, name, address, folder, cpus, preemptible, takes, machine, pod, log_format, probes})
    one->needs(join);
}

} // namespace

void add_agent(CLI::App& app, verb& chosen) {
  auto host = std::make_shared<runtime::joining_host>();
  auto probe_listen = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "agent",
      "Run roles of a job on this host: joins one, or is started by 'train' and 'resume' with --hosts");
  add_join_options(*command, *host, *probe_listen);
  command->footer(
      "Examples:\n"
      "  dlrun agent --join 10.0.0.1:7700 --token-file /run/dlrun.token --folder /var/lib/dlrun\n"
      "  dlrun agent --join 10.0.0.1:7700 --key-file /run/secrets/dlrun/key --folder /var/lib/dlrun\n"
      "Without --join it reads on its standard input what to do, as 'train' and 'resume' tell it.\n"
      "It ends with its job, when it has had no link to it, or no answer, for cluster.orphan_grace_s,\n"
      "or on SIGTERM, once its workers have handed back what they had in hand. It leaves no process\n"
      "behind. Exit codes: 0 the job is over, or the host was to leave; 1 the job goes on without it or\n"
      "is out of reach; 2 bad usage, token, key, data, folder or version; 4 the host would compute other\n"
      "bits than the job began with; 130 it was asked to end before it had joined, and with a key also\n"
      "when the host was to leave or the job was stopped.");
  command->callback([host, probe_listen, &chosen] {
    chosen = [host, probe_listen] { return run_agent(*host, *probe_listen); };
  });
}

} // namespace dlrun::cli
