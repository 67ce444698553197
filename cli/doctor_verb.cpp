#include "cli/address_option.hpp"
#include "cli/complain.hpp"
#include "cli/verbs.hpp"
#include "runtime/doctor.hpp"

#include <csignal>

namespace dlrun::cli {
namespace {

struct doctor_verb_options {
  std::string hosts;
  std::string address;
  std::string job;
  std::string run_dir;
  std::vector<std::string> overrides;
};

void say_finding(const runtime::finding& found) {
  if (found.wrong.empty())
    say(stdout, "ok     {}: {}{}{}\n", found.host, found.check, found.note.empty() ? "" : ": ", found.note);
  else
    say(stdout, "wrong  {}: {}: {}\n", found.host, found.check, found.wrong);
  flush(stdout);
}

int examine(const doctor_verb_options& options) {
  std::signal(SIGPIPE, SIG_IGN); // an agent may have ended
  auto hosts = runtime::plan_hosts(options.hosts, options.address);
  if (!hosts) return complain(hosts.error());
  runtime::doctor_options asked{.hosts = std::move(*hosts), .job = {}, .run_dir = {}};
  std::string name = "job";
  if (!options.job.empty()) {
    auto job = runtime::prepare_new_job(options.job, options.overrides);
    if (!job) return complain(job.error());
    name = job->spec.name();
    asked.job = std::move(*job);
  }
  asked.run_dir = std::filesystem::absolute(options.run_dir.empty() ? std::filesystem::path{"runs"} / name
                                                                    : std::filesystem::path{options.run_dir});
  const auto wrong = runtime::examine_hosts(asked, say_finding);
  if (!wrong) return complain(wrong.error());
  if (*wrong == 0) return static_cast<int>(job::exit_code::success);
  complain(
      fmt::format("found wrong with these hosts: {}; the lines above say what, and the way out", *wrong));
  return static_cast<int>(job::exit_code::job_failed);
}

} // namespace

void add_doctor(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<doctor_verb_options>();
  auto* command = app.add_subcommand(
      "doctor", "Look whether hosts are fit for a job: one line for each thing, with the way out");
  command->add_option("FILE", options->job, "Job specification: its data and needs are looked at too");
  command->add_option("--hosts", options->hosts, "List of the hosts, see docs/hosts.md")->required();
  add_address(*command, options->address);
  command->add_option("--run-dir", options->run_dir,
                      "Folder in which the run would be (default: runs/<name>)");
  command
      ->add_option("--set", options->overrides,
                   "Override a value of the job: path=value, e.g. cluster.workers=8; may be repeated")
      ->allow_extra_args(false);
  command->footer(
      "Example:\n"
      "  dlrun doctor job.yaml --hosts hosts.yaml\n"
      "It starts an agent on each host as a training does; nothing is left there.\n"
      "Exit codes: 0 all is well, 1 something is wrong, 2 bad usage, list, specification or data.");
  command->callback([options, &chosen] { chosen = [options] { return examine(*options); }; });
}

} // namespace dlrun::cli
