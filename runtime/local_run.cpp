#include "runtime/local_run.hpp"

#include "actors/agent/agent.hpp"
#include "actors/agent/control_socket.hpp"
#include "actors/agent/snapshot_pins.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/role_log.hpp"
#include "base/random.hpp"
#include "job/choices.hpp"
#include "job/exit_code.hpp"
#include "job/quantity.hpp"
#include "job/run_layout.hpp"
#include "observability/run_publisher.hpp"
#include "runtime/archiver.hpp"
#include "runtime/before_begin.hpp"
#include "runtime/final_report.hpp"
#include "runtime/folder_watch.hpp"
#include "runtime/launcher_choice.hpp"
#include "runtime/live_archive_source.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/room_wait.hpp"
#include "runtime/run_control.hpp"

#include <csignal>
#include <dlrun/check.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace dlrun::runtime {
namespace {

constexpr auto observer_period = std::chrono::milliseconds(100);
/// For hosts that were dismissed; and where nobody waits for the end.
constexpr auto gone_patience = std::chrono::seconds(5);
constexpr auto gone_patience_now = std::chrono::seconds(1);
constexpr std::size_t agent_threads = 2;
constexpr std::size_t all_roles_threads = 4;

/// A peer that is gone is an error of the call, not a signal. Threads that are made from here on
/// inherit it.
void block_broken_pipes() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

/// @param secrets of a run on several hosts, else null
result<std::shared_ptr<const common::job_context>>
make_context(const prepared_job& job, const std::filesystem::path& run_dir, const root_secrets* secrets) {
  const auto token =
      secrets != nullptr ? result<transport::run_token>{secrets->token()} : transport::run_token::random();
  if (!token) return tl::unexpected(token.error());
  return common::make_job_context({.spec = job.spec,
                                   .revisions = job.revisions,
                                   .train_records = job.train_records,
                                   .validation_records = job.validation_records,
                                   .run = job.run,
                                   .run_dir = run_dir,
                                   .has_hosts = secrets != nullptr,
                                   .run_token = *token,
                                   .started = common::now(),
                                   .data = job.data,
                                   .initial_weights = job.initial_weights,
                                   .gpus = job.gpus});
}

/// How the run begins: who has stopped it before it did, how its files are written, and what is
/// known of it meanwhile.
struct start {
  std::shared_ptr<before_begin> before;
  file_writing write;
  std::shared_ptr<const agent::run_board> board;
};

start make_start(const local_run_options& options, run_observer& observer,
                 std::shared_ptr<const agent::run_board> board) {
  const auto before = std::make_shared<before_begin>(options.hosts.has_value());
  auto write = options.is_new ? writing_once()
                              : writing_with_patience(observer, [before] { return before->is_stopped(); });
  return {before, std::move(write), std::move(board)};
}

hosts_callbacks asked_of(const run_observer& observer, const start& how) {
  return {how.write, [&observer](const auto& host) { return observer.may_join(host); }};
}

/// @param hosts null of a run on one host
agent::run_snapshot look_at(const agent::run_board& board,
                            const std::shared_ptr<agent::routed_launcher>& hosts) {
  auto now = board.snapshot();
  if (hosts) now.turned_away = hosts->waiting().turned_away(common::now());
  return now;
}

result<std::unique_ptr<agent::control_server>> answer_commands(const std::filesystem::path& run_dir,
                                                               const run_control& answers, const start& how) {
  std::unique_ptr<agent::control_server> server;
  const auto listens = how.write([&]() -> result<void> {
    auto made = agent::control_server::start(
        run_dir, [answers, before = how.before](const auto& request, const auto& reply) {
          if (const auto said = before->answer(request)) return reply(*said);
          answers.answer(request, reply);
        });
    if (!made) return tl::unexpected(made.error());
    server = std::move(*made);
    return {};
  });
  if (!listens) return tl::unexpected(listens.error());
  return server;
}

/// From here on the run is what it is changed to.
result<void> carry_out_change(const launcher_choice& chosen, const local_run_options& options) {
  if (!options.change) return {};
  const auto& change = *options.change;
  const bool is_same = options.is_same_job || options.gathers;
  const auto change_record = [&]() -> result<void> {
    if (chosen.hosts) return chosen.hosts->change_record(change.of_record, is_same);
    if (auto told = is_same ? result<void>{} : root_secrets::job_changes(options.run_dir); !told) return told;
    auto record = read_record(options.run_dir);
    if (!record) return tl::unexpected(record.error());
    DLRUN_CHECK(record->has_value(), "a run that goes on has a record");
    change.of_record(**record);
    if (auto written = write_record(options.run_dir, **record); !written || !options.home) return written;
    if (auto told = is_same ? result<void>{} : options.home->forget_secrets(); !told) return told;
    return options.home->keep_record(**record);
  };
  if (auto changed = change_record(); !changed) return changed;
  return change.of_files();
}

/// Why another process is the root now: the etcd says so, or a host. @param hosts null on one host
std::optional<std::string> superseded(const std::shared_ptr<root_home>& home,
                                      const std::shared_ptr<agent::routed_launcher>& hosts) {
  auto why = home ? home->lost() : std::nullopt;
  return why || !hosts ? why : hosts->waiting().superseded();
}

result<void> stopped() { return fail(error_code::interrupted, "stopped by 'dlrun stop'"); }

/// What may go wrong before a role is started: hosts that do not come, a socket that cannot be
/// had, an observer that does not want to. @returns what answers `dlrun status`
result<std::unique_ptr<agent::control_server>>
open_run(const launcher_choice& chosen, const protocol::agent_actor& agent, const local_run_options& options,
         const run_control& answers, run_observer& observer, const start& how) {
  std::unique_ptr<agent::control_server> control;
  const auto open = [&]() -> result<void> {
    auto made = answer_commands(options.run_dir, answers, how);
    if (!made) return tl::unexpected(made.error());
    control = std::move(*made);
    return {};
  };
  if (chosen.hosts) {
    if (auto opened = chosen.hosts->open(agent); !opened) return tl::unexpected(opened.error());
    if (auto done = open(); !done) return tl::unexpected(done.error()); // they may not come for long
    if (auto may = observer.hosts_may_join(); !may) return tl::unexpected(may.error());
  }
  if (chosen.hosts && !options.gathers) {
    base::turning turning{options.pulse->main};
    auto there = chosen.hosts->wait_until_there(observer, [&]() -> result<void> {
      turning.turn();
      common::post(agent, [launcher = chosen.hosts->launcher()] { launcher->tick(); });
      observer.hosts_come(look_at(*how.board, chosen.hosts->launcher()));
      if (how.before->is_stopped()) return stopped();
      if (auto why = superseded(options.home, chosen.hosts->launcher()))
        return fail(error_code::in_use, *std::move(why));
      return {};
    });
    if (!there) return tl::unexpected(there.error());
  }
  if (!control)
    if (auto done = open(); !done) return tl::unexpected(done.error());
  if (auto changed = how.write([&] { return carry_out_change(chosen, options); }); !changed)
    return tl::unexpected(changed.error());
  if (!how.before->begin()) return tl::unexpected(stopped().error());
  if (auto begun = observer.begun(); !begun) return tl::unexpected(begun.error());
  return control;
}

/// Of `dlrun token`.
token_maker tokens_of(const launcher_choice& chosen) {
  return [hosts = chosen.hosts.get()](std::chrono::seconds lifetime) -> result<std::string> {
    if (hosts == nullptr)
      return fail(
          error_code::bad_usage,
          "this job runs on one host: 'train' and 'resume' with --hosts, and 'join:' in that list, let "
          "others join");
    const auto made = hosts->make_token(lifetime);
    if (!made) return tl::unexpected(made.error());
    return nlohmann::json{
        {"token", made->text.reveal()}, {"address", made->address}, {"valid_s", lifetime.count()}}
        .dump();
  };
}

/// Nothing was started: hosts that came are dismissed. Those that an earlier root left wait for the
/// next one, unless nobody wants that. @returns why
tl::unexpected<error> give_up(const launcher_choice& chosen, const protocol::agent_actor& agent, error why) {
  if (chosen.hosts && chosen.hosts->takes_over() && why.code != error_code::interrupted) {
    chosen.hosts->close_door();
  } else if (chosen.hosts) {
    common::post(agent,
                 [launcher = chosen.hosts->launcher()] { launcher->dismiss("the run did not begin"); });
    chosen.hosts->wait_until_gone(gone_patience);
  }
  caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
  return tl::unexpected(std::move(why));
}

/// The run is over: its hosts were told so. Or they wait for the next root, since this one leaves
/// something there.
void release(const launcher_choice& chosen, const protocol::agent_actor& agent, bool are_to_wait) {
  if (!chosen.hosts) return;
  if (are_to_wait)
    chosen.hosts->close_door();
  else
    chosen.hosts->wait_until_gone(gone_patience);
  caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
}

/// Nobody waits for the roles any more. Those of other hosts end too, and wait for no other root.
void dismiss_now(const launcher_choice& chosen, const protocol::agent_actor& agent) {
  if (!chosen.hosts) return;
  common::post(agent, [launcher = chosen.hosts->launcher()] {
    launcher->dismiss("the root was asked to end at once");
  });
  chosen.hosts->wait_until_gone(gone_patience_now);
}

/// Do the hosts wait for another root? @param lacking see why_not_whole()
bool are_to_wait(const local_run_options& options, const protocol::job_ended& ended,
                 const std::string& lacking) {
  const bool was_stopped = ended.outcome == protocol::job_outcome::interrupted;
  return options.gathers ? was_stopped || !lacking.empty() : !lacking.empty() && !was_stopped;
}

/// What the specification wants to be shown to the tools of others. Of a job that was complete
/// before all has been.
observability::run_publisher make_publisher(const common::job_context& job,
                                            const std::shared_ptr<observability::metrics_server>& metrics,
                                            const protocol::agent_actor& agent, bool was_complete) {
  auto rule = job.make_update_rule(job.revision());
  DLRUN_CHECK(rule.has_value(), "a prepared job has an update rule");
  return {{job.spec.name(), job.run_dir, job.sampler, std::move(*rule)},
          was_complete ? spec::ObservabilitySpec{} : job.spec.observability(),
          metrics,
          [agent](protocol::job_event event) { caf::anon_send(agent, std::move(event)); }};
}

/// Of a run that was there before: on which hosts it goes on.
void tell_resumed(const std::optional<hosts_plan>& hosts, const protocol::agent_actor& agent) {
  protocol::job_event event{.event = "run-resumed",
                            .role = agent::agent_peer.role,
                            .incarnation = agent::agent_peer.incarnation,
                            .text = "the run is resumed on this host alone"};
  if (hosts) {
    std::vector<std::string> names;
    for (const auto& host : hosts->hosts.hosts()) names.push_back(host.name());
    event.text =
        fmt::format("the run is resumed on the hosts of '{}': {}", hosts->file, fmt::join(names, ", "));
    event.numbers.values = {protocol::named_number("hosts", static_cast<double>(names.size()))};
  }
  caf::anon_send(agent, std::move(event));
}

/// By what this process is the root.
struct own_hold {
  folder_watch folder;
  std::shared_ptr<root_home> home;
  std::shared_ptr<agent::routed_launcher> hosts; ///< null on one host
};

/// Why it is not the root any more; "" while it is. Of one that another root follows most observers
/// end the process at once: hosts are told nothing.
std::string why_lost(const own_hold& hold, run_observer& observer) {
  auto why = hold.folder.lost();
  if (!why.empty()) return why;
  if (auto taken = superseded(hold.home, hold.hosts)) observer.superseded(why = *std::move(taken));
  return why;
}

/// Follows the run until it has ended. @returns how.
protocol::job_ended watch(const launcher_choice& chosen, agent::run_board& board, run_observer& observer,
                          observability::run_publisher& publisher, const protocol::agent_actor& agent,
                          const own_hold& hold, const archiver* archives, base::pulse& pulse) {
  pulse.set_ready(true);
  base::turning turning{pulse.main};
  bool stopping = false;
  bool is_lost = false;
  for (;;) {
    turning.turn();
    std::vector<protocol::job_event> events;
    const auto ended = board.wait(observer_period, events);
    for (const auto& event : events) observer.event(event);
    if (archives != nullptr) board.set_archive(archives->view());
    publisher.update(board.snapshot(), events, common::now());
    if (ended) return *ended;
    observer.update(look_at(board, hold.hosts), common::now());
    if (const auto why = is_lost ? "" : why_lost(hold, observer); !why.empty()) {
      is_lost = true;
      caf::anon_send(agent, protocol::stop_job{protocol::job_outcome::failed, why, error_code::system, true});
    }
    const auto wish = observer.asked_to_stop();
    if (wish && wish->end_now) {
      if (!wish->leaves_hosts) dismiss_now(chosen, agent);
      if (hold.home) hold.home->give_up();
      wish->end_now();
    }
    if (!wish || std::exchange(stopping, true)) continue;
    protocol::stop_job stop{protocol::job_outcome::interrupted, wish->reason};
    stop.brings_stores = wish->brings_stores;
    caf::anon_send(agent, std::move(stop));
  }
}

protocol::fence fence_of(incarnation coordinator) { return {coordinator, base::random_number()}; }

/// Null of a run on this host alone.
result<std::shared_ptr<root_secrets>> take_secrets(const local_run_options& options) {
  if (!options.hosts) return nullptr;
  auto taken = root_secrets::take(options.run_dir, options.home);
  if (!taken) return tl::unexpected(taken.error());
  return std::make_shared<root_secrets>(std::move(*taken));
}

/// The report, and what is missing of the model though the job is complete, in the run folder or
/// where its observer brings it; "" where nothing.
struct ended_run {
  dlrun::report report;
  std::string lacking;
  bool was_stopped = false;
  std::string lost{}; ///< why the run folder is not there any more; whatever is there is not the run's
};

/// The roles have ended. @param lost see folder_watch  @returns what came of it
ended_run conclude(const launcher_choice& chosen, const protocol::agent_actor& agent,
                   const local_run_options& options, const protocol::job_ended& ended, std::string lost,
                   const std::function<dlrun::report()>& read_report) {
  ended_run made{{}, {}, ended.outcome == protocol::job_outcome::interrupted, std::move(lost)};
  const bool is_lost = !made.lost.empty();
  if (!is_lost) made.report = read_report();
  const bool is_told = made.report.status == run_status::completed;
  if (options.hosts && !is_lost && (is_told || !made.was_stopped))
    made.lacking = why_not_whole(options.run_dir).value_or("");
  if (!made.lacking.empty() && !is_told) made.lacking = made.report.reason; // it may be complete, or not
  const bool is_undelivered =
      options.hosts && !is_lost && is_told && ended.outcome == protocol::job_outcome::failed;
  if (made.lacking.empty() && is_undelivered) made.lacking = ended.reason;
  const bool waits = are_to_wait(options, ended, made.lacking);
  release(chosen, agent, waits);
  if (!waits && !is_lost) root_secrets::forget(options.run_dir);
  if (!waits && !is_lost && options.home)
    static_cast<void>(options.home->forget_secrets()); // nobody uses them
  return made;
}

/// What is known of the run in this process.
struct own_sight {
  const common::job_context& job;
  agent::run_board& board;
  spdlog::logger& log;
  std::unique_ptr<const archiver> archives{}; ///< null where there are none
};

/// Until it has ended. @returns what came of it
ended_run follow(const launcher_choice& chosen, const protocol::agent_actor& agent,
                 const local_run_options& options, const own_sight& seen, run_observer& observer,
                 observability::run_publisher& publisher) {
  const own_hold hold{folder_watch{options.run_dir}, options.home,
                      chosen.hosts ? chosen.hosts->launcher() : nullptr};
  const auto ended =
      watch(chosen, seen.board, observer, publisher, agent, hold, seen.archives.get(), *options.pulse);
  const auto path = options.run_dir / run_layout::report;
  auto made = conclude(chosen, agent, options, ended, hold.folder.lost(),
                       [&] { return final_report(seen.job, ended, seen.board.snapshot(), path, seen.log); });
  publisher.finish(made.report);
  std::error_code ignored;
  const bool is_written = std::filesystem::exists(path, ignored);
  if (made.lacking.empty() && made.lost.empty())
    observer.summary(made.report, is_written ? path.string() : "");
  return made;
}

void begin(const local_run_options& options, const protocol::agent_actor& agent) {
  if (!options.is_new && !options.gathers) tell_resumed(options.hosts, agent);
  caf::anon_send(agent, protocol::tick{});
}

/// Null where the job has none, or was complete before.
std::unique_ptr<archiver> begin_archives(caf::actor_system& system, const common::job_context& job,
                                         const protocol::agent_actor& agent,
                                         const std::shared_ptr<agent::routed_launcher>& hosts,
                                         const std::shared_ptr<agent::run_board>& board,
                                         const local_run_options& options) {
  agent::drop_kept_snapshots(job.run_dir);
  if (!job.spec.durability().has_archive() || options.gathers) return nullptr;
  const auto& wanted = job.spec.durability().archive();
  const auto every = job::parse_duration(wanted.every());
  DLRUN_CHECK(every.has_value(), "durability.archive.every is no duration");
  return std::make_unique<archiver>(
      archiver_options{
          .run_dir = job.run_dir,
          .folder = wanted.folder(),
          .every = std::chrono::duration<double>{*every},
          .ps_shards = job.ps_shards(),
          .evaluated = job.evaluations(),
          .tell = [agent](protocol::job_event event) { caf::anon_send(agent, std::move(event)); },
          .step = [board] { return board->snapshot().step; }},
      std::make_unique<live_archive_source>(system, agent, hosts, job.run_dir, job.ps_shards()));
}

/// Adds what becomes of a job that is complete (R38), and who hears that it lives.
agent::agent_arguments with_wind_up(agent::agent_arguments made, const local_run_options& options,
                                    run_observer& observer) {
  made.gathers = options.gathers;
  made.pulse = options.pulse;
  if (!made.hosts) return made;
  made.lacking = [run_dir = options.run_dir] { return why_not_whole(run_dir); };
  made.deliver = [&observer](const std::stop_token& stop) { return observer.deliver(stop); };
  return made;
}

result<ended_run> run_roles(const prepared_job& prepared, const local_run_options& options,
                            run_observer& observer) {
  const auto secrets = take_secrets(options);
  if (!secrets) return tl::unexpected(secrets.error());
  auto job = make_context(prepared, options.run_dir, secrets->get());
  if (!job) return tl::unexpected(job.error());
  const bool threads = !options.gathers && job::placement_of((*job)->spec) == job::placement::threads;
  common::actor_config config{threads ? all_roles_threads : agent_threads};
  caf::actor_system system{config};
  const auto board = std::make_shared<agent::run_board>();
  const auto log = common::make_role_log(**job, agent::agent_peer.role, agent::agent_peer.incarnation);
  const auto how = make_start(options, observer, board);
  auto chosen = threads ? choose_threads(system, *job)
                        : choose_processes(system, *job, options, *secrets, log, asked_of(observer, how));
  if (!chosen) return tl::unexpected(chosen.error());
  const auto hosts = chosen->hosts ? chosen->hosts->launcher() : nullptr;
  const auto drains = hosts ? std::make_shared<agent::drain_desk>(hosts, chosen->hosts->drains()) : nullptr;
  auto agent =
      system.spawn(agent::agent_state::start, with_wind_up({.job = *job,
                                                            .coordinator = fence_of(options.coordinator),
                                                            .launcher = chosen->launcher,
                                                            .board = board,
                                                            .log = log,
                                                            .hosts = hosts,
                                                            .drains = drains},
                                                           options, observer));
  chosen->introduce(agent);
  auto control = open_run(*chosen, agent, options,
                          run_control{{.system = system,
                                       .spec = (*job)->spec,
                                       .board = board,
                                       .agent = agent,
                                       .make_token = tokens_of(*chosen),
                                       .hosts = hosts,
                                       .drains = drains,
                                       .held_up_by = [&observer] { return observer.held_up_by(); }}},
                          observer, how);
  if (!control) return give_up(*chosen, agent, control.error());
  auto publisher = make_publisher(**job, prepared.metrics, agent, options.gathers.has_value());
  begin(options, agent);
  const own_sight seen{**job, *board, *log, begin_archives(system, **job, agent, hosts, board, options)};
  auto made = follow(*chosen, agent, options, seen, observer, publisher);
  control->reset(); // only now is the run over for 'dlrun status'
  return made;
}

} // namespace

result<report> run_locally(const prepared_job& prepared, const local_run_options& options,
                           run_observer& observer) {
  block_broken_pipes();
  auto ended = run_roles(prepared, options, observer);
  std::error_code ignored;
  if (!ended && options.is_new) std::filesystem::remove_all(options.run_dir, ignored); // nothing began
  if (!ended) return tl::unexpected(ended.error());
  if (!ended->lost.empty()) return fail(error_code::system, ended->lost);
  if (ended->lacking.empty() && !(options.gathers && ended->was_stopped)) return std::move(ended->report);
  if (ended->lacking.empty())
    return fail(error_code::interrupted, "stopped before the hosts of the job had heard that it is over; its "
                                         "model is in the run folder, and the same command tells them");
  return fail(ended->was_stopped ? error_code::interrupted : error_code::role_lost, ended->lacking);
}

} // namespace dlrun::runtime
