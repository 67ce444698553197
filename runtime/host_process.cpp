#include "runtime/host_process.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/agent/enrolment/enrolment_client.hpp"
#include "actors/agent/host_agent.hpp"
#include "actors/agent/process_launcher.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/fingerprint.hpp"
#include "actors/common/role_log.hpp"
#include "actors/link/process_link.hpp"
#include "base/os_error.hpp"
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
#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t host_agent_threads = 2;
constexpr std::size_t token_file_bytes_max = 4096;

/// What this host is in the job: who it is to the others, the job with its data, and who gives that
/// to others.
struct host_part {
  link::remote_access access;
  std::shared_ptr<const common::job_context> job;
  protocol::data_intake intake{};
  std::unique_ptr<data_giver> giver{}; ///< null where data.share is off
};

transport::run_token token_of(const bootstrap::HostBundle& bundle) {
  return transport::run_token::from_bytes(bundle.run_token()).value();
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
                                          .initial_weights = job.initial_weights,
                                          .gpus = std::move(job.gpus)};
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

auto look_at_stores(const bootstrap::HostBundle& bundle, const common::job_context& job) {
  return [folder = std::filesystem::path{bundle.folder()}, ps_shards = job.ps_shards()](const auto& running) {
    return held_stores(folder, ps_shards, running);
  };
}

/// Gets the data of the job, from other hosts where it is not here, and gives it to others.
result<host_part> take_part(const bootstrap::HostBundle& bundle, const base::unique_fd& signals,
                            engine::gpu_set gpus) {
  auto access = access_of(bundle);
  if (!access) return tl::unexpected(access.error());
  data_fetch_options fetch{.token = token_of(bundle), .tls = access->identity, .root = {}};
  fetch.is_stopped = [&signals] { return is_asked_to_end(signals); };
  // What an agent prints is in the log of its host in the run folder.
  fetch.note = [](const std::string& text) { fmt::print(stderr, "data: {}\n", text); };
  auto prepared = prepare_on_host(bundle, std::move(fetch));
  if (!prepared) return tl::unexpected(prepared.error());
  prepared->job.gpus = std::move(gpus);
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

agent::host_agent_config core_of(const bootstrap::HostBundle& bundle, std::uint64_t boot) {
  return {.host = bundle.host(),
          .boot = boot,
          .orphan_grace =
              protocol::from_seconds<protocol::duration>(bundle.spec().cluster().orphan_grace_s()),
          .leave_grace = protocol::from_seconds<protocol::duration>(bundle.spec().cluster().leave_grace_s())};
}

result<std::shared_ptr<agent::process_launcher>>
make_launcher(const bootstrap::HostBundle& bundle, const std::shared_ptr<const common::job_context>& job) {
  auto program = agent::own_executable();
  if (!program) return tl::unexpected(program.error());
  auto launcher = agent::process_launcher::create(
      {.job = job, .program = *program, .host_address = bundle.address(), .host_name = bundle.host()});
  if (!launcher) return tl::unexpected(launcher.error());
  (*launcher)->agent_listens_at(bundle.agent_address());
  return std::shared_ptr<agent::process_launcher>{std::move(*launcher)};
}

/// Runs the agent of a job until it ends.
result<void> serve(const bootstrap::HostBundle& bundle, host_part part, const base::unique_fd& signals) {
  const auto& job = part.job;
  const auto made = make_launcher(bundle, job);
  if (!made) return tl::unexpected(made.error());
  const auto& roles = *made;
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
  const auto notices = std::make_shared<std::atomic<int>>(0);
  const auto dial = agent_dial(**link, bundle.agent_address());
  const auto role =
      system.spawn(agent::host_agent_state::start,
                   agent::host_agent_arguments{.core = core_of(bundle, boot),
                                               .started_by = bundle.agent_process(),
                                               .cpus = bundle.cpus() != 0 ? bundle.cpus() : usable_cpus(),
                                               .stores = look_at_stores(bundle, *job),
                                               .folder = bundle.folder(),
                                               .data_at = part.giver ? part.giver->address() : "",
                                               .intake = std::move(part.intake),
                                               .dial = dial,
                                               .launcher = roles,
                                               .beats = beats,
                                               .root = root_of(bundle),
                                               .log = log,
                                               .has_notice = [notices, heard = 0]() mutable {
                                                 return heard < *notices ? (++heard, true) : false;
                                               }});
  const agent_relay renewal{system,
                            {.first = {},
                             .dial = dial,
                             .self = {self.role, self.incarnation},
                             .identity = identity,
                             .lifetime = std::chrono::seconds{bundle.credentials().lifetime_s()},
                             .log = log}};
  const auto ends = caf::actor_cast<caf::actor>(role);
  return run_to_end(ends, signals, [notices] { ++*notices; });
}

/// With what of the job is on this host.
result<void> serve(const bootstrap::HostBundle& bundle, const base::unique_fd& signals) {
  if (const auto journal = check_journal_here(bundle.spec()); !journal)
    return fail(journal.error().code, fmt::format("host {}: {}", bundle.host(), journal.error().message));
  auto gpus = open_gpus(bundle.spec());
  if (!gpus) return fail(gpus.error().code, fmt::format("host {}: {}", bundle.host(), gpus.error().message));
  if (const auto same = check_same_arithmetic(bundle.record(), bundle.spec()); !same)
    return fail(same.error().code, fmt::format("host {}: {}", bundle.host(), same.error().message));
  auto part = take_part(bundle, signals, std::move(*gpus));
  if (!part) return tl::unexpected(part.error());
  return serve(bundle, std::move(*part), signals);
}

result<void> serve_in_folder(const bootstrap::HostBundle& bundle, const base::unique_fd& signals) {
  const auto folder = host_folder::take(bundle);
  if (!folder) return tl::unexpected(folder.error());
  auto ended = serve(bundle, signals);
  folder->discard_unused();
  return ended;
}

// ---- joining

/// A token is a secret: a file that everybody can read is refused, as ssh refuses such keys. Groups
/// may, since systemd shows a credential that one user may read in this way.
result<agent::join_token> read_token(const std::string& file) {
  const base::unique_fd opened{file == "-" ? ::dup(STDIN_FILENO)
                                           : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const auto name = file == "-" ? std::string{"the standard input"} : fmt::format("'{}'", file);
  if (!opened)
    return fail(error_code::bad_usage, fmt::format("the token cannot be read from {}: {}", name,
                                                   std::generic_category().message(errno)));
  struct stat about {};
  if (::fstat(opened.get(), &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & S_IRWXO) != 0)
    return fail(error_code::bad_usage,
                fmt::format("everybody on this host may read {}, and whoever has the token joins the job: "
                            "'chmod 600' it, or better make another token",
                            name));
  std::array<char, token_file_bytes_max> text{};
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size();) {
    got = ::read(opened.get(), text.data() + size, text.size() - size);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  auto token = agent::parse_token({text.data(), size});
  ::explicit_bzero(text.data(), text.size());
  if (!token) return fail(token.error().code, fmt::format("{}: {}", name, token.error().message));
  return token;
}

result<agent::enrolment_wish> wish_of(const joining_host& host, agent::join_token token) {
  agent::enrolment_wish wish{.root = host.root,
                             .token = std::move(token),
                             .version = common::dlrun_version(),
                             .as = {},
                             .bundle_bytes_max = bundle_bytes_max};
  std::array<char, HOST_NAME_MAX + 1> own{};
  if (host.name.empty() && ::gethostname(own.data(), own.size() - 1) != 0)
    return base::fail_errno("this host has no name");
  wish.as.set_name(host.name.empty() ? own.data() : host.name);
  wish.as.set_address(host.address);
  if (!host.folder.empty())
    wish.as.set_folder(std::filesystem::absolute(host.folder).lexically_normal().string());
  wish.as.set_cpus(host.cpus);
  return wish;
}

} // namespace

result<void> run_host_agent(int input) {
  const auto signals = take_stop_signals();
  const auto bundle = read_bundle(input);
  if (!bundle) return tl::unexpected(bundle.error());
  if (bundle->examine()) return examine_here(*bundle, input, STDOUT_FILENO);
  return serve_in_folder(*bundle, signals);
}

result<void> join_job(const joining_host& host, const std::function<void(const std::string&)>& tell) {
  auto token = read_token(host.token_file);
  if (!token) return tl::unexpected(token.error());
  auto wish = wish_of(host, std::move(*token));
  if (!wish) return tl::unexpected(wish.error());
  auto enrolled = agent::enrol(*wish); // before the signals: Ctrl-C ends it
  if (!enrolled) return tl::unexpected(enrolled.error());
  const auto signals = take_stop_signals(true);
  const auto bundle = read_bundle(enrolled->bundle.get());
  auto ended = bundle ? result<void>{} : tl::unexpected(bundle.error());
  if (bundle) {
    enrolled->bundle.reset();
    tell(fmt::format("host {} has joined the job '{}', whose root is on host {}; its folder here is {}",
                     bundle->host(), bundle->spec().name(), bundle->root(), bundle->folder()));
    ended = serve_in_folder(*bundle, signals);
  }
  if (ended) return ended;
  enrolled->line.tell_end(ended.error().message); // where the root waits for this host still
  if (ended.error().code == error_code::role_lost)
    ended.error().message += "; with a new token ('dlrun token RUN', where the root runs) it may join again";
  return ended;
}

} // namespace dlrun::runtime
