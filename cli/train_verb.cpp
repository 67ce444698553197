#include "cli/address_option.hpp"
#include "cli/auto_choice.hpp"
#include "cli/complain.hpp"
#include "cli/detached_root.hpp"
#include "cli/json_display.hpp"
#include "cli/pods_export.hpp"
#include "cli/pods_hosts.hpp"
#include "cli/pods_outcome.hpp"
#include "cli/pods_suspension.hpp"
#include "cli/probe_option.hpp"
#include "cli/resumed_run.hpp"
#include "cli/standby_wait.hpp"
#include "cli/trained_export.hpp"
#include "cli/verb_end.hpp"
#include "cli/verbs.hpp"
#include "cli/warn_of_trained_on.hpp"
#include "job/run_layout.hpp"
#include "job/spec_reader.hpp"
#include "runtime/begun_run.hpp"
#include "runtime/hosts_run.hpp"
#include "runtime/new_run.hpp"
#include "runtime/run_record.hpp"

namespace dlrun::cli {
namespace {

struct train_options {
  std::string file;
  std::string run_dir;
  std::vector<std::string> overrides;
  std::string hosts;
  std::string address;
  std::string machine;
  std::string kubernetes_job;
  std::string archives;   ///< folder; "": none
  std::string model_file; ///< to be written; "": none
  std::string probe_listen;
  bool or_resume = false;
  bool detach = false;
  bool json = false;
};

/// Nothing: the model can be written, as far as that can be told before anything is trained.
std::optional<verb_end> refuse_export(const train_options& options) {
  const auto fine = check_export(options.model_file, options.run_dir, options.file);
  if (fine) return std::nullopt;
  auto ended = ended_by(fine.error());
  ended.may_pass = true; // what it is on may be away for a while
  return ended;
}

/// Of a run that is not to go on by itself.
verb_end say_failed(const runtime::begun_run& found, bool json) {
  const auto path = found.folder / run_layout::report;
  if (json) json_display{stdout, {}}.summary(*found.failed, path.string());
  complain(
      fmt::format("the run in '{}' has failed: {}; nothing was started: '{}' goes on with it when that is "
                  "mended",
                  found.folder.string(), found.failed->reason, runtime::resume_command(found.folder)));
  return {static_cast<int>(job::exit_code_for(*found.failed)), found.failed->reason, found.failed,
          std::nullopt};
}

/// Nothing is left to do. Only its report tells how it ended.
verb_end say_completed_again(const runtime::begun_run& found, bool json) {
  auto report = dlrun::read_report(found.folder / run_layout::report);
  if (!report) return ended_by(report.error());
  say_completed(found.folder, json);
  const auto code = static_cast<int>(job::exit_code_for(*report));
  return {code, {}, *std::move(report), std::nullopt};
}

/// Also when it is completed.
verb_end go_on(const runtime::begun_run& found, const spec::JobSpec& asked,
               const std::optional<runtime::hosts_plan>& hosts, const train_options& options,
               const display_choice& how) {
  if (found.failed) return say_failed(found, options.json);
  std::optional<stop_signals> signals;
  std::optional<standby_wait> waiting; // it handles signals, as the first process of a container has to
  if (!options.kubernetes_job.empty()) waiting.emplace(options.kubernetes_job, signals.emplace(), how.pulse);
  const auto resumed = runtime::prepare_resumption(found.folder, {.overrides = found.changes}, hosts, asked,
                                                   {}, waiting ? &*waiting : nullptr);
  if (waiting && waiting->ended()) return *waiting->ended();
  if (!resumed) return ended_by(resumed.error());
  if (!signals) signals.emplace();
  auto ended =
      resumed->job ? run_resumed(*resumed, hosts, how, *signals) : say_completed_again(found, options.json);
  ended.home = resumed->home;
  return ended;
}

/// @param torn what becomes of a beginning in the folder
/// @param is_elsewhere asked where it did not begin: whether another process has just begun it
/// @returns nothing where that is so
std::optional<verb_end> begin(const train_options& options, const std::optional<runtime::hosts_plan>& hosts,
                              runtime::torn_beginning torn, const std::function<bool()>& is_elsewhere,
                              const display_choice& how) {
  if (auto refused = refuse_export(options)) return refused;
  auto job = runtime::prepare_new_job(options.file, options.overrides);
  if (!job) return ended_by(job.error());
  if (auto fits = runtime::check_for_hosts(job->spec, hosts); !fits) return ended_by(fits.error());
  warn_of_trained_on(*job);
  stop_signals signals; // from here on there is something to end in order
  const auto run = runtime::begin_run(
      *job, options.run_dir,
      {.torn = torn, .hosts = hosts, .is_interrupted = [&signals] { return signals.has_come(); }});
  if (!run && is_elsewhere()) return std::nullopt;
  if (!run) return ended_by(run.error());
  if (run->device)
    tell_auto("device", "cluster", "device", run->device->device, run->device->reason, options.json);
  if (run->durability)
    tell_auto("durability", "durability", "log", run->durability->log, run->durability->reason, options.json);
  if (run->replicas) tell_replicas(*run->replicas, options.json);
  auto ended = run_displayed(*job,
                             {.run_dir = run->folder.path(),
                              .hosts = hosts,
                              .copies_may_wait = run->replicas && run->replicas->is_auto,
                              .is_new = true,
                              .home = run->home},
                             how, signals);
  ended.home = run->home;
  return ended;
}

/// The run in its folder, or in the etcd, if there is one.
verb_end begin_or_go_on(const train_options& options, const std::optional<runtime::hosts_plan>& hosts,
                        const display_choice& how) {
  const auto asked = job::read_spec(options.file, options.overrides);
  if (!asked) return ended_by(asked.error());
  if (!options.archives.empty()) {
    const auto restored = runtime::begin_from_archive(*asked, options.run_dir, options.archives);
    if (!restored) return ended_by(restored.error());
    if (*restored) note(**restored);
  }
  auto found = runtime::find_begun_run(*asked, options.run_dir, hosts.has_value());
  if (found && !*found) {
    const auto is_elsewhere = [&] {
      return hosts && runtime::look_into_etcd(*asked) == runtime::run_in_etcd::begun;
    };
    if (auto ended = begin(options, hosts, runtime::torn_beginning::removed, is_elsewhere, how))
      return *std::move(ended);
    found = runtime::find_begun_run(*asked, options.run_dir, hosts.has_value());
  }
  if (found && *found) return go_on(**found, *asked, hosts, options, how);
  if (found) return ended_by({error_code::in_use, "another root has begun this run just now: try again"});
  auto ended = ended_by(found.error());
  ended.may_pass = runtime::look_into_etcd(*asked) == runtime::run_in_etcd::unknown;
  return ended;
}

verb_end train(const train_options& options, const display_choice& how) {
  const auto hosts = runtime::plan_hosts_if_named(options.hosts, options.address, options.machine);
  if (!hosts) return ended_by(hosts.error());
  const bool has_pods = !options.kubernetes_job.empty(); // then a run that has begun goes on all the same
  if (!has_pods)
    if (auto refused = refuse_export(options)) return *std::move(refused);
  auto ended = options.or_resume
                   ? begin_or_go_on(options, *hosts, how)
                   : *begin(
                         options, *hosts, runtime::torn_beginning::refused, [] { return false; }, how);
  if (has_pods) return ended; // pods_export writes it
  return export_trained(std::move(ended), options.model_file, options.run_dir);
}

/// In a control pod: makes the pods of its hosts, and tells Kubernetes how the job has ended.
int train_on_pods(const train_options& options, const std::shared_ptr<base::pulse>& pulse) {
  auto pods = std::make_unique<pods_hosts>(options.kubernetes_job, options.address);
  pods_export model{options.kubernetes_job, options.run_dir, options.model_file};
  auto ended = train(
      options, {.json = options.json,
                .hosts_may_join = [&pods] { return pods->begin(); },
                .may_join = [&pods](const auto& who) { return pods->may_join(who); },
                .hosts_come = [&pods](const auto& now) { pods->see_who_comes(now); },
                .seen = [&pods](const auto& now) { pods->see(now); },
                .in_doubt = [&pods] { pods->pause(); },
                .must_end = [&pods]() -> std::optional<std::string> {
                  const auto why = pods->end();
                  return why ? std::optional{why->why} : std::nullopt;
                },
                .on_term = [&pods] { return pods->on_term(); },
                .held_up_by = [&pods] { return pods->held_up_by(); },
                .deliver = [&model](const auto& stop, const auto& home) { return model.deliver(stop, home); },
                .pulse = pulse});
  ended = model.end(ended_for(pods->end(), std::move(ended)));
  pods.reset(); // none is made any more
  tell_kubernetes(ended, options.kubernetes_job, options.run_dir);
  const bool had_run = ended.error != error_code::in_use;
  if (had_run && ended.code == static_cast<int>(job::exit_code::interrupted))
    end_suspended(options.kubernetes_job, options.run_dir);
  return ended.code;
}

int train_where_wanted(const train_options& options) {
  if (options.detach)
    return run_detached(options.json, [&](const begun_hook& begun) {
      return train(options, {.json = options.json, .begun = begun}).code;
    });
  const auto pulse = std::make_shared<base::pulse>();
  const auto probes = start_probes(options.probe_listen, pulse);
  if (!probes) return complain(probes.error());
  return options.kubernetes_job.empty() ? train(options, {.json = options.json, .pulse = pulse}).code
                                        : train_on_pods(options, pulse);
}

/// `options` outlives the command.
void add_or_resume(CLI::App& command, train_options& options) {
  auto* or_resume = command.add_flag(
      "--or-resume", options.or_resume,
      "Go on with the run in its folder where there is one, for what starts it again and again");
  command
      .add_option("--from-archive", options.archives,
                  "Where there is no run in its folder, go on from the newest archive in this one, if any")
      ->needs(or_resume);
}

} // namespace

void add_train(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<train_options>();
  auto* command = app.add_subcommand(
      "train", "Train a model: starts everything, here or on several hosts, and waits for the end");
  command->add_option("FILE", options->file, "Job specification (YAML, see docs/spec.md)")->required();
  auto* run_dir = command->add_option("--run-dir", options->run_dir,
                                      "Folder for everything the run writes (default: runs/<name>)");
  command
      ->add_option("--set", options->overrides,
                   "Override a value: path=value, e.g. train.epochs=3; may be repeated")
      ->allow_extra_args(false);
  auto* hosts =
      command->add_option("--hosts", options->hosts,
                          "Use the hosts that this file lists, see docs/hosts.md (default: this host alone)");
  add_address(*command, options->address)->needs(hosts);
  add_machine(*command, options->machine)->needs(hosts);
  add_or_resume(*command, *options);
  command
      ->add_option("--export", options->model_file,
                   "When the job is complete, write the model to this file, as 'dlrun export' does")
      ->needs(run_dir);
  auto* detach =
      command->add_flag("--detach", options->detach,
                        "Return when the job has begun; it keeps going without terminal, see 'attach'");
  command
      ->add_option(
          "--kubernetes-job", options->kubernetes_job,
          "In a pod of this Job: make the pods of its hosts, and tell Kubernetes how the job has ended, see "
          "docs/kubernetes.md")
      ->needs(run_dir)
      ->excludes(detach);
  add_probe_listen(*command, options->probe_listen)->excludes(detach);
  auto* json = command->add_flag("--json", options->json,
                                 "Progress, events and the report as JSON, one object a line");
  add_log_format(*command)->excludes(detach)->excludes(json);
  command->footer(
      "Examples:\n"
      "  dlrun train examples/fashion_mnist/cnn.yaml\n"
      "  dlrun train job.yaml --run-dir /data/run7 --set train.optimizer.sgd.lr=0.1 --set cluster.workers=4\n"
      "  dlrun train job.yaml --detach && dlrun attach runs/fashion-mnist-cnn\n"
      "  dlrun train job.yaml --or-resume\n"
      "Exit codes: 0 all data trained, 1 the job failed, 2 bad usage, specification or data, 3 records were "
      "left out,\n130 interrupted; with --detach 0 when the job has begun.");
  command->callback([options, &chosen] { chosen = [options] { return train_where_wanted(*options); }; });
}

} // namespace dlrun::cli
