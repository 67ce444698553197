#include "cli/address_option.hpp"
#include "cli/complain.hpp"
#include "cli/detached_root.hpp"
#include "cli/probe_option.hpp"
#include "cli/resumed_run.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"
#include "runtime/archive_restoration.hpp"

namespace dlrun::cli {
namespace {

struct resume_verb_options {
  std::string directory;
  resume_options how;
  std::string archives; ///< folder; "": none
  std::string hosts;
  std::string address;
  std::string machine;
  std::string probe_listen;
  bool detach = false;
  bool json = false;
};

/// The folder of the run, which this process holds. @returns bad_usage where there is no archive.
result<runtime::run_folder> restore(const resume_verb_options& options) {
  const auto found = runtime::find_whole_archive(options.archives);
  if (!found) return tl::unexpected(found.error());
  if (!*found)
    return fail(error_code::bad_usage,
                fmt::format("--from-archive: there is no archive in '{}'", options.archives));
  auto restored = runtime::restore_run(**found, options.directory);
  if (restored) note(runtime::tell_restored(**found));
  return restored;
}

result<runtime::resumption> prepare(const resume_verb_options& options,
                                    const std::optional<runtime::hosts_plan>& hosts) {
  if (options.archives.empty()) return runtime::prepare_resumption(options.directory, options.how, hosts);
  auto restored = restore(options);
  if (!restored) return tl::unexpected(restored.error());
  return runtime::prepare_restored(*std::move(restored), options.how, hosts);
}

int resume(const resume_verb_options& options, const display_choice& how) {
  const auto hosts = runtime::plan_hosts_if_named(options.hosts, options.address, options.machine);
  if (!hosts) return complain(hosts.error());
  const auto resumed = prepare(options, *hosts);
  if (!resumed) return complain(resumed.error());
  if (!resumed->job) {
    say_completed(resumed->folder.path(), options.json);
    return static_cast<int>(job::exit_code::success);
  }
  stop_signals signals;
  return run_resumed(*resumed, *hosts, how, signals).code;
}

int resume_where_wanted(const resume_verb_options& options) {
  if (options.detach)
    return run_detached(options.json, [&](const begun_hook& begun) {
      return resume(options, {.json = options.json, .begun = begun});
    });
  const auto pulse = std::make_shared<base::pulse>();
  const auto probes = start_probes(options.probe_listen, pulse);
  if (!probes) return complain(probes.error());
  return resume(options, {.json = options.json, .pulse = pulse});
}

} // namespace

void add_resume(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<resume_verb_options>();
  auto* command = app.add_subcommand(
      "resume", "Go on with a run that was stopped or died: from what its PS shards have on disk");
  command->add_option("DIR", options->directory, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command
      ->add_option("--set", options->how.overrides,
                   "Go on with another value: path=value, e.g. train.optimizer.sgd.lr=0.01; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--skip", options->how.skip,
                   "Leave the records of a slot out: STEP:SLOT, or STEP:SLOT:RECORD; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--from", options->how.from,
                   "Go on from this step, or the newest before it that can be restored, not from the newest")
      ->check(whole_number());
  command->add_option("--from-archive", options->archives,
                      "Everything was lost: make the run folder DIR, which must not be there, of the newest "
                      "archive in this folder (durability.archive)");
  auto* hosts =
      command->add_option("--hosts", options->hosts,
                          "Use the hosts that this file lists, see docs/hosts.md (default: this host alone)");
  add_address(*command, options->address)->needs(hosts);
  add_machine(*command, options->machine)->needs(hosts);
  command->add_flag("--as-trained", options->how.as_trained,
                    "Go on as trained, though spec.yaml was edited: it is written again");
  command->add_flag("--unrecorded", options->how.unrecorded,
                    "Go on with a run that has no run.record (of dlrun 0.1), with its data as it is");
  auto* detach =
      command->add_flag("--detach", options->detach,
                        "Return when the job has begun; it keeps going without terminal, see 'attach'");
  add_probe_listen(*command, options->probe_listen)->excludes(detach);
  auto* json = command->add_flag("--json", options->json,
                                 "Progress, events and the report as JSON, one object a line");
  add_log_format(*command)->excludes(detach)->excludes(json);
  command->footer(
      "Examples:\n"
      "  dlrun resume runs/fashion-mnist-cnn\n"
      "  dlrun resume runs/diverged --from 1200 --set train.optimizer.sgd.lr=0.01\n"
      "  dlrun resume runs/on-three-hosts --hosts hosts.yaml\n"
      "Without changes the result is that of an undisturbed run, bit for bit. A folder that a run "
      "is using is\nrefused; a run that is completed says so.");
  command->callback([options, &chosen] { chosen = [options] { return resume_where_wanted(*options); }; });
}

} // namespace dlrun::cli
