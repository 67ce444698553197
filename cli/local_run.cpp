#include "cli/local_run.hpp"

#include "actors/agent/agent.hpp"
#include "actors/agent/control_socket.hpp"
#include "actors/agent/process_launcher.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/fingerprint.hpp"
#include "actors/common/role_log.hpp"
#include "cli/json_display.hpp"
#include "cli/progress_display.hpp"
#include "cli/say.hpp"
#include "cli/thread_launcher.hpp"

#include <csignal>
#include <random>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr auto display_period = std::chrono::milliseconds(100);
constexpr std::size_t agent_threads = 2;
constexpr std::size_t all_roles_threads = 4;

transport::unique_fd take_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGINT);
  sigaddset(&handled, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return transport::unique_fd{::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK)};
}

bool signal_came(const transport::unique_fd& signals) {
  signalfd_siginfo info{};
  return ::read(signals.get(), &info, sizeof info) == sizeof info;
}

result<std::shared_ptr<const common::job_context>> make_context(const prepared_job& job,
                                                                const std::filesystem::path& run_dir) {
  const auto token = transport::run_token::random();
  if (!token) return tl::unexpected(token.error());
  return common::make_job_context({.spec = job.spec,
                                   .revisions = job.revisions,
                                   .train_records = job.train_records,
                                   .validation_records = job.validation_records,
                                   .run_dir = run_dir,
                                   .run_token = *token,
                                   .started = common::now(),
                                   .data = job.data,
                                   .initial_weights = job.initial_weights});
}

/// The launcher that the specification asks for, and how it learns where the agent is.
struct launcher_choice {
  std::shared_ptr<agent::role_launcher> launcher;
  std::function<result<void>(caf::actor_system&, const protocol::agent_actor&)> introduce;
};

result<launcher_choice> choose_launcher(caf::actor_system& system,
                                        const std::shared_ptr<const common::job_context>& job) {
  if (job->spec.cluster().placement() == "threads") {
    auto threads = std::make_shared<thread_launcher>(system, job);
    return launcher_choice{threads,
                           [threads](caf::actor_system&, const protocol::agent_actor& agent) -> result<void> {
                             threads->agent_is(agent);
                             return {};
                           }};
  }
  auto program = agent::own_executable();
  if (!program) return tl::unexpected(program.error());
  auto made = agent::process_launcher::create({.job = job, .program = *program});
  if (!made) return tl::unexpected(made.error());
  auto processes = std::shared_ptr<agent::process_launcher>{std::move(*made)};
  return launcher_choice{
      processes, [processes](caf::actor_system& actors, const protocol::agent_actor& agent) -> result<void> {
        const auto port = actors.middleman().publish(agent, 0, "127.0.0.1");
        if (!port) return fail(error_code::system, "cannot listen on loopback: " + to_string(port.error()));
        processes->agent_listens_at(*port);
        return {};
      }};
}

std::unique_ptr<run_display> make_display(const common::job_context& job, bool json) {
  if (json) return std::make_unique<json_display>(stdout, job.started);
  return std::make_unique<progress_display>(stdout, ::isatty(STDOUT_FILENO) == 1,
                                            job.sampler.records_in_step({0}), job.started);
}

/// Follows the run until it has ended. @returns how.
protocol::job_ended watch(agent::run_board& board, run_display& display, const protocol::agent_actor& agent,
                          const transport::unique_fd& signals) {
  int asked = 0;
  for (;;) {
    std::vector<protocol::job_event> events;
    const auto ended = board.wait(display_period, events);
    for (const auto& event : events) display.event(event);
    if (ended) return *ended;
    display.update(board.snapshot(), common::now());
    if (!signal_came(signals)) continue;
    if (++asked > 1)
      std::_Exit(static_cast<int>(job::exit_code::interrupted)); // the children's lifeline ends them
    caf::anon_send(agent, protocol::stop_job{protocol::job_outcome::interrupted, "interrupted by a signal"});
  }
}

/// The report that the coordinator wrote, or, when it could not, one with what the root knows.
job::report final_report(const common::job_context& job, const protocol::job_ended& ended,
                         const agent::run_snapshot& last, const std::filesystem::path& path) {
  if (auto written = job::read_report(path)) return *written;
  job::report report;
  report.job = job.spec.name();
  report.status = ended.outcome == protocol::job_outcome::interrupted ? job::run_status::interrupted
                                                                      : job::run_status::failed;
  report.reason = ended.reason.empty() ? "the coordinator left no report" : ended.reason;
  report.steps = last.step;
  report.epochs = last.step / job.sampler.steps_per_epoch();
  report.wall_seconds = protocol::to_seconds(common::now() - job.started);
  report.versions.dlrun = common::dlrun_version();
  report.host.cpu_model = common::cpu_model();
  if (const auto saved = job::write_report(path, report); !saved)
    say(stderr, "dlrun: {}\n", saved.error().message);
  return report;
}

protocol::fence fence_of(incarnation coordinator) {
  std::random_device random;
  return {coordinator, (std::uint64_t{random()} << 32) | random()};
}

std::string answer_control(const agent::run_board& board, const protocol::agent_actor& agent,
                           const std::string& request) {
  if (request == "status") return agent::to_json(board.snapshot());
  if (request != "stop") return R"({"error":"unknown request"})";
  caf::anon_send(agent, protocol::stop_job{protocol::job_outcome::interrupted, "stopped by 'dlrun stop'"});
  return "stopping";
}

} // namespace

result<job::exit_code> run_locally(const prepared_job& prepared, const std::filesystem::path& run_dir,
                                   incarnation coordinator, bool json) {
  const auto signals = take_signals();
  auto job = make_context(prepared, run_dir);
  if (!job) return tl::unexpected(job.error());
  const bool threads = (*job)->spec.cluster().placement() == "threads";
  common::actor_config config{threads ? all_roles_threads : agent_threads};
  caf::actor_system system{config};
  const auto board = std::make_shared<agent::run_board>();
  auto chosen = choose_launcher(system, *job);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto log = common::make_role_log(run_dir, {protocol::role_kind::agent, 0}, {1});
  auto agent = system.spawn(agent::agent_state::start, agent::agent_arguments{*job, fence_of(coordinator),
                                                                              chosen->launcher, board, log});
  if (auto ready = chosen->introduce(system, agent); !ready) {
    caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
    return tl::unexpected(ready.error());
  }
  auto control = agent::control_server::start(
      run_dir, [board, agent](const std::string& request) { return answer_control(*board, agent, request); });
  if (!control) {
    caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
    return tl::unexpected(control.error());
  }
  const auto display = make_display(**job, json);
  caf::anon_send(agent, protocol::tick{});
  const auto ended = watch(*board, *display, agent, signals);

  const auto path = run_dir / "report.json";
  const auto report = final_report(**job, ended, board->snapshot(), path);
  display->summary(report, path.string());
  control->reset(); // only now is the run over for 'dlrun status'
  if (report.status != job::run_status::completed) say(stderr, "dlrun: {}\n", report.reason);
  return job::exit_code_for(report);
}

} // namespace dlrun::cli
