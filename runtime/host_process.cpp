#include "runtime/host_process.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/agent/host_agent.hpp"
#include "actors/agent/process_launcher.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/role_log.hpp"
#include "actors/link/process_link.hpp"
#include "base/random.hpp"
#include "runtime/agent_relay.hpp"
#include "runtime/device_choice.hpp"
#include "runtime/held_stores.hpp"
#include "runtime/host_bundle.hpp"
#include "runtime/host_data.hpp"
#include "runtime/host_examination.hpp"
#include "runtime/host_folder.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/journal_choice.hpp"
#include "runtime/root_beats.hpp"
#include "runtime/run_fingerprint.hpp"
#include "runtime/stop_wait.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t host_agent_threads = 2;

/// What this host is in the job: who it is to the others, the job with its data, and who gives that
/// to others.
struct host_part {
  link::remote_access access;
  std::shared_ptr<const common::job_context> job;
  protocol::data_intake intake{};
  std::unique_ptr<data_giver> giver{}; ///< null where data.share is off
};

transport::run_token token_of(const bootstrap::HostBundle& bundle) {
  transport::run_token token;
  std::ranges::copy(bundle.run_token(), token.bytes.begin());
  return token;
}

/// Whether somebody asked this process to end.
bool is_asked_to_end(const base::unique_fd& signals) {
  pollfd watched{signals.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) > 0;
}

result<std::shared_ptr<const common::job_context>> make_host_context(const bootstrap::HostBundle& bundle,
                                                                     prepared_job job) {
  common::job_context_arguments arguments{.spec = std::move(job.spec),
                                          .train_records = job.train_records,
                                          .validation_records = job.validation_records,
                                          .run_dir = bundle.folder(),
                                          .agent_process = bundle.agent_process(),
                                          .started = common::now() - protocol::duration(bundle.running_us()),
                                          .data = job.data,
                                          .initial_weights = job.initial_weights};
  arguments.run_token = token_of(bundle);
  arguments.revisions.assign(bundle.revisions().begin(), bundle.revisions().end());
  return common::make_job_context(std::move(arguments));
}

result<std::unique_ptr<link::process_link>>
open_host_link(caf::actor_system& system, const bootstrap::HostBundle& bundle, const link::peer_id& self,
               link::remote_access remote, const std::shared_ptr<spdlog::logger>& log) {
  link::process_link_options options{.token = token_of(bundle),
                                     .self = self,
                                     .remote = std::move(remote),
                                     .warn = [log](const std::string& text) { log->warn("{}", text); }};
  return link::process_link::create(system, std::move(options));
}

result<link::remote_access> access_of(const bootstrap::HostBundle& bundle) {
  return make_remote_access(agent::from_message(bundle.credentials()), bundle.address());
}

agent::host_agent_config core_config(const bootstrap::HostBundle& bundle, std::uint64_t boot) {
  return {.host = bundle.host(),
          .boot = boot,
          .orphan_grace =
              protocol::from_seconds<protocol::duration>(bundle.spec().cluster().orphan_grace_s())};
}

auto look_at_stores(const bootstrap::HostBundle& bundle, const common::job_context& job) {
  return [folder = std::filesystem::path{bundle.folder()}, ps_shards = job.ps_shards()](const auto& running) {
    return held_stores(folder, ps_shards, running);
  };
}

/// Gets the data of the job, from other hosts where it is not here, and gives it to others.
result<host_part> take_part(const bootstrap::HostBundle& bundle, const base::unique_fd& signals) {
  auto access = access_of(bundle);
  if (!access) return tl::unexpected(access.error());
  data_fetch_options fetch{.token = token_of(bundle), .tls = access->identity, .root = {}};
  fetch.is_stopped = [&signals] { return is_asked_to_end(signals); };
  // What an agent prints is in the log of its host in the run folder.
  fetch.note = [](const std::string& text) { fmt::print(stderr, "data: {}\n", text); };
  auto prepared = prepare_on_host(bundle, std::move(fetch));
  if (!prepared) return tl::unexpected(prepared.error());
  const auto data = prepared->job.data;
  auto job = make_host_context(bundle, std::move(prepared->job));
  if (!job) return tl::unexpected(job.error());
  host_part part{std::move(*access), std::move(*job), std::move(prepared->intake)};
  if (bundle.data_at().empty()) return part;
  auto giver = data_giver::start(
      {.token = token_of(bundle), .listen = bundle.address(), .tls = part.access.identity}, data);
  if (!giver) return tl::unexpected(giver.error());
  part.giver = std::move(*giver);
  return part;
}

/// Runs the agent of a job until it ends.
result<void> serve(const bootstrap::HostBundle& bundle, host_part part, const base::unique_fd& signals) {
  const auto& job = part.job;
  auto program = agent::own_executable();
  if (!program) return tl::unexpected(program.error());
  auto launcher =
      agent::process_launcher::create({.job = job, .program = *program, .host_address = bundle.address()});
  if (!launcher) return tl::unexpected(launcher.error());
  const std::shared_ptr<agent::process_launcher> roles{std::move(*launcher)};
  const auto boot = base::random_number();
  auto exchange = agent::beat_exchange::start({.address = bundle.address(), .boot = boot});
  if (!exchange) return tl::unexpected(exchange.error());
  const std::shared_ptr<agent::beat_exchange> beats{std::move(*exchange)};
  const link::peer_id self{{protocol::role_kind::host_agent, bundle.index()}, {boot}};
  const auto log = common::make_role_log(*job, self.role, self.incarnation);
  common::actor_config config{host_agent_threads};
  caf::actor_system system{config};
  const auto identity = part.access.identity;
  auto link = open_host_link(system, bundle, self, std::move(part.access), log);
  if (!link) return tl::unexpected(link.error());
  roles->agent_listens_at(bundle.agent_address());
  const auto cpus = bundle.cpus() != 0 ? bundle.cpus() : usable_cpus();
  const auto dial = agent_dial(**link, bundle.agent_address());
  const auto role =
      system.spawn(agent::host_agent_state::start,
                   agent::host_agent_arguments{.core = core_config(bundle, boot),
                                               .started_by = bundle.agent_process(),
                                               .cpus = cpus,
                                               .stores = look_at_stores(bundle, *job),
                                               .folder = bundle.folder(),
                                               .data_at = part.giver ? part.giver->address() : "",
                                               .intake = std::move(part.intake),
                                               .dial = dial,
                                               .launcher = roles,
                                               .beats = beats,
                                               .root = root_of(bundle),
                                               .log = log});
  const agent_relay renewal{system,
                            {.first = {},
                             .dial = dial,
                             .self = {self.role, self.incarnation},
                             .identity = identity,
                             .lifetime = std::chrono::seconds{bundle.credentials().lifetime_s()},
                             .log = log}};
  const auto ends = caf::actor_cast<caf::actor>(role);
  return run_to_end(ends, signals, [&] { caf::anon_send_exit(ends, caf::exit_reason::user_shutdown); });
}

/// With what of the job is on this host.
result<void> serve(const bootstrap::HostBundle& bundle, const base::unique_fd& signals) {
  if (const auto journal = check_journal_here(bundle.spec()); !journal)
    return fail(journal.error().code, fmt::format("host {}: {}", bundle.host(), journal.error().message));
  if (const auto gpus = open_gpus(bundle.spec()); !gpus)
    return fail(gpus.error().code, fmt::format("host {}: {}", bundle.host(), gpus.error().message));
  if (const auto same = check_same_arithmetic(bundle.record(), bundle.spec()); !same)
    return fail(same.error().code, fmt::format("host {}: {}", bundle.host(), same.error().message));
  auto part = take_part(bundle, signals);
  if (!part) return tl::unexpected(part.error());
  return serve(bundle, std::move(*part), signals);
}

} // namespace

result<void> run_host_agent(int input) {
  const auto signals = take_stop_signals();
  const auto bundle = read_bundle(input);
  if (!bundle) return tl::unexpected(bundle.error());
  if (bundle->examine()) return examine_here(*bundle, input, STDOUT_FILENO);
  const auto folder = host_folder::take(*bundle);
  if (!folder) return tl::unexpected(folder.error());
  auto ended = serve(*bundle, signals);
  folder->discard_unused();
  return ended;
}

} // namespace dlrun::runtime
