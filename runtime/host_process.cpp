#include "runtime/host_process.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/agent/enrolment/enrolment_client.hpp"
#include "actors/agent/host_agent.hpp"
#include "actors/agent/process_launcher.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/fingerprint.hpp"
#include "actors/common/role_log.hpp"
#include "actors/common/root_place.hpp"
#include "actors/link/process_link.hpp"
#include "actors/protocol/host_takes.hpp"
#include "base/os_error.hpp"
#include "base/random.hpp"
#include "runtime/agent_relay.hpp"
#include "runtime/descriptor_limit.hpp"
#include "runtime/device_choice.hpp"
#include "runtime/held_stores.hpp"
#include "runtime/host_bundle.hpp"
#include "runtime/host_data.hpp"
#include "runtime/host_examination.hpp"
#include "runtime/host_folder.hpp"
#include "runtime/hosts_plan.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/join_worries.hpp"
#include "runtime/journal_choice.hpp"
#include "runtime/process_limit.hpp"
#include "runtime/root_beats.hpp"
#include "runtime/run_fingerprint.hpp"
#include "runtime/secret_file.hpp"
#include "runtime/stop_wait.hpp"
#include "security/clock_check.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <set>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t host_agent_threads = 2;
/// Between two tries to reach a root.
constexpr auto enrol_retry = std::chrono::milliseconds(500);
/// One try: 10 s for each of some addresses, and 60 s for the answer of the root. A root that does
/// not answer is not this process' fault.
constexpr auto enrol_max = std::chrono::seconds(180);

/// What the agent is at, for whoever reads its log.
using host_note = std::function<void(const std::string&)>;

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

/// Can processes listen on that number?
bool is_own_number(const std::string& number) {
  return is_loopback(number) || own_numbers().contains(number);
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
                                          .run = bundle.record().run(),
                                          .run_dir = bundle.folder(),
                                          .root_dir = bundle.root_dir(),
                                          .has_hosts = true,
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
  return [folder = std::filesystem::path{bundle.folder()}, ps_shards = job.ps_shards(),
          run = job.run](const auto& running) { return held_stores(folder, ps_shards, run, running); };
}

/// Gets the data of the job, from other hosts where it is not here, and gives it to others.
result<host_part> take_part(const bootstrap::HostBundle& bundle, const base::unique_fd& signals,
                            engine::gpu_set gpus, const host_note& note) {
  auto access = access_of(bundle);
  if (!access) return tl::unexpected(access.error());
  data_fetch_options fetch{.token = token_of(bundle), .tls = access->identity, .root = {}};
  fetch.is_stopped = [&signals] { return is_asked_to_end(signals); };
  fetch.note = [&note](const std::string& text) { note("data: " + text); };
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
make_launcher(const bootstrap::HostBundle& bundle, const std::shared_ptr<const common::job_context>& job,
              std::shared_ptr<const common::root_place> place) {
  auto program = agent::own_executable();
  if (!program) return tl::unexpected(program.error());
  auto launcher = agent::process_launcher::create({.job = job,
                                                   .program = *program,
                                                   .host_address = bundle.address(),
                                                   .host_name = bundle.host(),
                                                   .root_place = std::move(place)});
  if (!launcher) return tl::unexpected(launcher.error());
  (*launcher)->agent_listens_at(bundle.agent_address());
  return std::shared_ptr<agent::process_launcher>{std::move(*launcher)};
}

/// What it is; not whom it talks to.
agent::host_agent_arguments arguments_of(const bootstrap::HostBundle& bundle, host_part& part,
                                         std::uint64_t boot) {
  return {.core = core_of(bundle, boot),
          .started_by = bundle.agent_process(),
          .cpus = bundle.cpus() != 0 ? bundle.cpus() : usable_cpus(),
          .gpus = static_cast<std::uint32_t>(part.job->gpus.numbers.size()),
          .preemptible = bundle.preemptible(),
          .takes = protocol::host_takes_of(bundle.takes()),
          .machine = bundle.machine(),
          .stores = look_at_stores(bundle, *part.job),
          .folder = bundle.folder(),
          .data_at = part.giver ? part.giver->address() : "",
          .intake = std::move(part.intake),
          .dial = {},
          .place = {},
          .launcher = {},
          .beats = {},
          .root = root_of(bundle),
          .log = {}};
}

/// What the agent is told by signals, and what it tells when it ends.
struct agent_words {
  std::atomic<int> notices = 0;
  agent::leave left{};
};

/// By what this process is told to end, and by what it tells that it lives.
struct own_process {
  base::unique_fd signals;
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>();
};

/// Runs the agent of a job until it ends. @returns why it did, where the job did not lose it.
result<agent::leave> serve(const bootstrap::HostBundle& bundle, host_part part, const own_process& own) {
  const auto& job = part.job;
  auto shared = common::root_place::create();
  if (!shared) return tl::unexpected(shared.error());
  const auto place = std::make_shared<common::root_place>(std::move(*shared));
  const auto made = make_launcher(bundle, job, place);
  if (!made) return tl::unexpected(made.error());
  const auto boot = base::random_number();
  auto exchange = start_host_beats(bundle, boot);
  if (!exchange) return tl::unexpected(exchange.error());
  const std::shared_ptr<agent::beat_exchange> beats{std::move(*exchange)};
  const link::peer_id self{{protocol::role_kind::host_agent, bundle.index()}, {boot}};
  const auto log = common::make_role_log(*job, self.role, self.incarnation);
  common::actor_config config{host_agent_threads};
  caf::actor_system system{config};
  const auto identity = part.access.identity;
  auto link = open_host_link(system, bundle, self, std::move(part.access), log);
  if (!link) return tl::unexpected(link.error());
  const auto words = std::make_shared<agent_words>();
  const auto dial = agent_dial(connect_over(**link), bundle.agent_address(), place);
  auto arguments = arguments_of(bundle, part, boot);
  arguments.dial = dial;
  arguments.place = place;
  arguments.leave_root = agent_leave(**link);
  arguments.launcher = *made;
  arguments.beats = beats;
  arguments.log = log;
  arguments.pulse = own.pulse;
  arguments.has_notice = [words, heard = 0]() mutable {
    return heard < words->notices ? (++heard, true) : false;
  };
  arguments.leaves = [words](const auto& how) { words->left = how; };
  const auto role = system.spawn(agent::host_agent_state::start, std::move(arguments));
  const agent_relay renewal{system,
                            {.first = {},
                             .dial = dial,
                             .place = place,
                             .self = {self.role, self.incarnation},
                             .identity = identity,
                             .lifetime = std::chrono::seconds{bundle.credentials().lifetime_s()},
                             .log = log}};
  const auto ended =
      run_to_end(caf::actor_cast<caf::actor>(role), own.signals, [words] { ++words->notices; });
  return ended ? result<agent::leave>{words->left} : tl::unexpected(ended.error());
}

/// The root has just made them.
result<void> check_clock_of_host(const bootstrap::HostBundle& bundle) {
  const auto& made = bundle.credentials();
  return security::check_clock({made.certificate(), security::secret_text{}, made.authority()});
}

result<void> check_own_number(const bootstrap::HostBundle& bundle) {
  if (is_own_number(bundle.address())) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("no interface of the host has the address {}: write one of {} into the list of hosts",
                  bundle.address(), fmt::join(own_numbers(), ", ")));
}

/// Whether the host of the bundle may take part at all. @returns bad_usage, or the code of what is
/// wrong, with the name of the host
result<void> check_host(const bootstrap::HostBundle& bundle) {
  const auto of_host = [&](result<void> checked, std::optional<error_code> code = std::nullopt) {
    return std::move(checked).map_error([&](const auto& why) {
      return error{code.value_or(why.code), fmt::format("host {}: {}", bundle.host(), why.message)};
    });
  };
  const auto& spec = bundle.spec();
  return of_host(check_clock_of_host(bundle), error_code::bad_usage)
      .and_then([&] { return of_host(check_own_number(bundle)); })
      .and_then([&] { return of_host(check_descriptor_limit(spec), error_code::bad_usage); })
      .and_then([&] {
        return of_host(check_process_limit(spec, std::max(1U, bundle.hosts())), error_code::bad_usage);
      })
      .and_then([&] { return of_host(bundle.no_coordinator() ? result<void>{} : check_journal_here(spec)); })
      .and_then([&] { return of_host(check_same_arithmetic(bundle.record(), spec)); });
}

/// With what of the job is on this host.
result<agent::leave> serve(const bootstrap::HostBundle& bundle, const own_process& own,
                           const host_note& note) {
  const bool has_workers = protocol::host_takes_of(bundle.takes()) != protocol::host_takes::ps_shards;
  auto gpus = has_workers ? open_gpus(bundle.spec()) : engine::gpu_set{};
  if (!gpus) return fail(gpus.error().code, fmt::format("host {}: {}", bundle.host(), gpus.error().message));
  auto part = take_part(bundle, own.signals, std::move(*gpus), note);
  if (!part) return tl::unexpected(part.error());
  return serve(bundle, std::move(*part), own);
}

result<agent::leave> serve_in_folder(const bootstrap::HostBundle& bundle, const own_process& own,
                                     const host_note& note) {
  const auto folder = host_folder::take(bundle); // may wait for an earlier agent
  if (!folder) return tl::unexpected(folder.error());
  auto ended = serve(bundle, own, note);
  folder->discard_unused();
  return ended;
}

// ---- joining

/// Before a token is used up: processes of the job listen on it.
result<void> check_wish(const std::string& address) {
  if (address.empty() || is_own_number(address)) return {};
  return fail(error_code::bad_usage,
              fmt::format("--address {}: no interface of this host has that number: name one of {}, or leave "
                          "it out",
                          address, fmt::join(own_numbers(), ", ")));
}

result<void> add_secret(agent::enrolment_wish& wish, const joining_host& host) {
  if (!host.key_file.empty()) {
    auto key = read_key_file(host.key_file);
    if (!key) return tl::unexpected(key.error());
    wish.key = std::move(*key);
    return {};
  }
  auto token = read_token_file(host.token_file);
  if (!token) return tl::unexpected(token.error());
  wish.token = std::move(*token);
  return {};
}

/// @param signals see enrolment_wish::stop
result<agent::enrolment_wish> wish_of(const joining_host& host, const base::unique_fd& signals) {
  agent::enrolment_wish wish{.root = host.root,
                             .token = {},
                             .version = common::dlrun_build(),
                             .as = {},
                             .bundle_bytes_max = bundle_bytes_max,
                             .stop = signals.get()};
  if (auto own = check_wish(host.address); !own) return tl::unexpected(own.error());
  if (auto added = add_secret(wish, host); !added) return tl::unexpected(added.error());
  std::array<char, HOST_NAME_MAX + 1> own{};
  if (host.name.empty() && ::gethostname(own.data(), own.size() - 1) != 0)
    return base::fail_errno("this host has no name");
  wish.as.set_name(host.name.empty() ? own.data() : host.name);
  wish.as.set_address(host.address);
  if (!host.folder.empty())
    wish.as.set_folder(std::filesystem::absolute(host.folder).lexically_normal().string());
  wish.as.set_cpus(host.cpus);
  wish.as.set_preemptible(host.preemptible);
  wish.as.set_takes(host.takes);
  wish.as.set_machine(host.machine);
  wish.as.set_pod(host.pod);
  return wish;
}

/// May the same be tried again?
bool may_come_about(error_code code) {
  return code == error_code::system || code == error_code::timed_out || code == error_code::protocol ||
         code == error_code::in_use;
}

/// @returns whether this process was asked to end within that time
bool is_asked_within(const base::unique_fd& signals, std::chrono::milliseconds time) {
  pollfd watched{signals.get(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

/// Tries until the host is let in, is refused for good, or its time is over; says once, for each
/// kind of reason, what it waits for, and warns when that takes long.
result<agent::enrolled_host> enrol_in_time(const agent::enrolment_wish& wish,
                                           std::optional<std::chrono::seconds> wait, const own_process& own,
                                           const join_words& words) {
  using clock = std::chrono::steady_clock;
  base::turning turning{own.pulse->main};
  const auto until = wait ? clock::now() + *wait : clock::time_point::max();
  join_worries worries{clock::now()};
  for (std::set<error_code> told;;) {
    turning.turn(enrol_max);
    auto enrolled = agent::enrol(wish);
    if (enrolled || !may_come_about(enrolled.error().code) || clock::now() >= until) return enrolled;
    if (told.insert(enrolled.error().code).second)
      words.tell(fmt::format("waits for the root at {}: {}", wish.root, enrolled.error().message));
    if (const auto now = clock::now(); worries.is_due(now))
      words.warn(fmt::format("this host has tried in vain for {} s to join at {} by TCP, {}; what came of it "
                             "last: {}",
                             worries.lasts(now).count(), wish.root, agent::way_to(wish.root),
                             enrolled.error().message));
    turning.turn();
    if (is_asked_within(own.signals, enrol_retry))
      return fail(error_code::interrupted,
                  fmt::format("it was asked to end while it waited for the root at {}", wish.root));
  }
}

/// What came of a host that has joined, or could not begin.
tl::expected<agent::leave, host_failure> serve_enrolled(agent::enrolled_host& enrolled,
                                                        const own_process& own, const join_words& words) {
  const auto bundle = read_bundle(enrolled.bundle.get());
  if (!bundle) return tl::unexpected(host_failure{bundle.error()});
  enrolled.bundle.reset();
  if (const auto may = check_host(*bundle); !may) {
    const bool is_same = check_same_arithmetic(bundle->record(), bundle->spec()).has_value();
    return tl::unexpected(host_failure{may.error(), !is_same});
  }
  words.tell(fmt::format("host {} has joined the job '{}', whose root is on host {}; its folder here is {}",
                         bundle->host(), bundle->spec().name(), bundle->root(), bundle->folder()));
  auto ended = serve_in_folder(*bundle, own, words.note);
  if (!ended) return tl::unexpected(host_failure{ended.error()});
  return *ended;
}

} // namespace

result<void> run_host_agent(int input) {
  const own_process own{take_stop_signals()};
  const auto bundle = read_bundle(input);
  if (!bundle) return tl::unexpected(bundle.error());
  if (bundle->examine()) return examine_here(*bundle, input, STDOUT_FILENO);
  if (const auto may = check_host(*bundle); !may) return tl::unexpected(may.error());
  // What an agent prints is in the log of its host in the run folder.
  const host_note note = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  if (const auto ended = serve_in_folder(*bundle, own, note); !ended) return tl::unexpected(ended.error());
  return {};
}

tl::expected<void, host_failure> join_job(const joining_host& host, const join_words& words) {
  const auto failed = [](error why) { return tl::unexpected(host_failure{std::move(why)}); };
  const bool has_key = !host.key_file.empty();
  const auto wait = host.wait || has_key ? host.wait : std::chrono::seconds{0};
  // Signals before all else: the first process of a container has no others.
  const own_process own{take_stop_signals(true), host.pulse};
  const auto wish = wish_of(host, own.signals);
  if (!wish) return failed(wish.error());
  auto enrolled = enrol_in_time(*wish, wait, own, words);
  if (!enrolled) return failed(enrolled.error());
  auto ended = serve_enrolled(*enrolled, own, words);
  if (ended && has_key && ended->kind != agent::leave_kind::for_good)
    return failed({error_code::interrupted, (ended->reason.empty() ? "it was asked to end" : ended->reason) +
                                                "; the host may join again"});
  if (ended) return {};
  auto& why = ended.error().why;
  enrolled->line.tell_end(why.message); // where the root waits for this host still
  if (why.code == error_code::role_lost)
    why.message += has_key ? "; it may join again"
                           : "; with a new token ('dlrun token RUN', where the root runs) it may join again";
  return tl::unexpected(ended.error());
}

} // namespace dlrun::runtime
