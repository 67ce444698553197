#include "runtime/launcher_choice.hpp"

#include "actors/agent/agent.hpp"
#include "actors/agent/process_launcher.hpp"
#include "runtime/thread_launcher.hpp"

#include <filesystem>
#include <string>
#include <utility>

namespace dlrun::runtime {
namespace {

/// By its full path: the folder that this process is in may change.
result<agent::executable> program_at(const std::string& path) {
  const auto full = std::filesystem::absolute(path).string();
  return agent::executable{full, full};
}

/// On the port that an earlier root had, if that can be had.
result<std::unique_ptr<link::process_link>>
open_link(caf::actor_system& system, link::process_link_options options, spdlog::logger& log) {
  auto link = link::process_link::create(system, options);
  if (link || !options.remote || options.remote->port == 0) return link;
  log.warn("port-taken: {}; the agents that an earlier root left do not find this one", link.error().message);
  options.remote->port = 0;
  return link::process_link::create(system, std::move(options));
}

} // namespace

result<agent::executable> program_of_roles(const std::string& named) {
  return named.empty() ? agent::own_executable() : program_at(named);
}

result<launcher_choice> choose_threads(caf::actor_system& system,
                                       const std::shared_ptr<const common::job_context>& job) {
  auto threads = std::make_shared<thread_launcher>(system, job);
  return launcher_choice{threads, [threads](const auto& agent) { threads->agent_is(agent); }, nullptr};
}

result<launcher_choice>
choose_processes(caf::actor_system& system, const std::shared_ptr<const common::job_context>& job,
                 const local_run_options& options, const std::shared_ptr<root_secrets>& secrets,
                 const std::shared_ptr<spdlog::logger>& log, const hosts_callbacks& asks) {
  auto program = program_of_roles(options.role_program);
  if (!program) return tl::unexpected(program.error());
  const auto& hosts = options.hosts;
  auto made = agent::process_launcher::create({.job = job,
                                               .program = *program,
                                               .host_address = hosts ? hosts->own_number() : "",
                                               .host_name = hosts ? hosts->own().name() : ""});
  if (!made) return tl::unexpected(made.error());
  link::process_link_options to_others{.token = job->run_token,
                                       .self = agent::agent_peer,
                                       .remote = {},
                                       .warn = [log](const std::string& text) { log->warn("{}", text); }};
  identities who{.job = {}, .own = {}, .secrets = secrets};
  who.gathers = options.gathers;
  who.asks = asks;
  who.copies_may_wait = options.copies_may_wait;
  if (hosts) {
    who.takes_over = options.is_same_job && secrets->are_found();
    if (options.is_same_job || !options.change) secrets->note_root(job->process, options.is_same_job);
    auto access = open_to_hosts(*hosts, who);
    if (!access) return tl::unexpected(access.error());
    to_others.remote = std::move(*access);
  }
  auto link = open_link(system, std::move(to_others), *log);
  if (!link) return tl::unexpected(link.error());
  (*made)->agent_listens_at((*link)->address());
  launcher_choice choice{std::move(*made), [to = link->get()](const auto& agent) { to->publish(agent); },
                         std::move(*link)};
  if (!hosts) return choice;
  auto run = hosts_run::create(*hosts, job, choice.launcher, choice.link->address(), who);
  if (!run) return tl::unexpected(run.error());
  choice.hosts = std::move(*run);
  choice.launcher = choice.hosts->launcher();
  return choice;
}

} // namespace dlrun::runtime
