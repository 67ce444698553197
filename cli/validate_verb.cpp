#include "base/utf8.hpp"
#include "cli/complain.hpp"
#include "cli/pod_sizes.hpp"
#include "cli/pods_options.hpp"
#include "cli/verbs.hpp"
#include "cli/warn_of_trained_on.hpp"
#include "cli/whole_number.hpp"
#include "kubernetes/pod_requests.hpp"
#include "runtime/prepared_job.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace dlrun::cli {
namespace {

struct validate_options {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
  bool kubernetes = false;
  std::uint32_t hosts = 1;     ///< pods beside the control pod
  std::uint32_t hosts_min = 0; ///< 0: all
  std::optional<std::uint32_t> control_cpus{};
  std::uint32_t gpus = 0; ///< of each pod; 0: of a job with cluster.device: cuda 1
  std::optional<std::uint32_t> control_gpus{};
  std::string archive_claim{};
  std::uint32_t ps_hosts = 0; ///< pods for PS shards
};

/// What a pod needs, and what `dlrun manifests` is to be told.
struct pod_figures {
  runtime::pod_needs needs;
  std::string memory, disk;
  std::string options{};      ///< that lead to such pods
  std::uint64_t data_mib = 0; ///< decoded
  std::uint32_t hosts_min = 0;
  std::vector<runtime::pod_need> ps_memory{}; ///< of a pod for PS shards; none: there are none
};

/// What pods there are to be, with GPUs where the job needs some.
result<pods_wish> wish_of(const spec::JobSpec& job, const validate_options& options) {
  pods_wish wish{.name = {}, .name_space = {}, .image = {}, .job_file = {}};
  wish.hosts = options.hosts;
  wish.archive_claim = options.archive_claim;
  wish.control_cpus = options.control_cpus;
  wish.ps_hosts = options.ps_hosts;
  if (auto spared = spare_control(wish); !spared) return tl::unexpected(spared.error());
  wish.gpus = options.gpus == 0 && needs_gpus(job) ? 1 : options.gpus;
  if (auto settled = settle_gpus({.control = options.control_gpus}, wish); !settled)
    return tl::unexpected(settled.error());
  if (auto settled = settle_hosts_min(options.hosts_min, wish); !settled)
    return tl::unexpected(settled.error());
  if (auto fine = check_gpus(job, wish); !fine) return tl::unexpected(fine.error());
  return wish;
}

/// Those of `dlrun manifests` that lead to such pods.
std::string words_for(const pods_wish& wish, const validate_options& options) {
  auto words = fmt::format("--hosts {}", options.hosts);
  if (options.hosts_min > 0) words += fmt::format(" --hosts-min {}", options.hosts_min);
  if (options.ps_hosts > 0) words += fmt::format(" --ps-hosts {}", options.ps_hosts);
  if (options.control_cpus == 0U) words += " --control-cpus 0";
  if (wish.gpus > 0) words += fmt::format(" --gpus {}", wish.gpus);
  if (options.control_gpus) words += fmt::format(" --control-gpus {}", *options.control_gpus);
  if (!options.archive_claim.empty())
    words += fmt::format(" --archive-claim {}", base::printable(options.archive_claim));
  return words;
}

/// With the data that is there.
result<pod_figures> figures_of(const runtime::prepared_job& job, const validate_options& options) {
  const auto wish = wish_of(job.spec, options);
  if (!wish) return tl::unexpected(wish.error());
  auto spec = job.spec;
  if (wish->settles_device) spec.mutable_cluster()->set_device("cuda");
  const auto sizes = sizes_on_pods(spec, *wish);
  if (!sizes) return tl::unexpected(sizes.error());
  std::uint64_t data = 0;
  for (const auto& memory : data::memory_of(*job.data)) data += memory->bytes().size();
  data = (data + (1U << 20) - 1) >> 20 << 20;
  const auto pods = pods_at_least(*wish);
  pod_figures made{
      .needs = runtime::needs_of_pod(*sizes, pods, data), .memory = {}, .disk = {}, .data_mib = data >> 20};
  made.memory = memory_text(runtime::sum_of(made.needs.memory));
  made.disk = disk_text(runtime::sum_of(made.needs.disk));
  made.hosts_min = wish->hosts_min;
  made.options = words_for(*wish, options);
  if (wish->ps_hosts > 0) {
    made.ps_memory = runtime::needs_of_ps_pod(*sizes, data).memory;
    made.options += fmt::format(" --ps-memory {}", memory_text(runtime::sum_of(made.ps_memory)));
  }
  return made;
}

nlohmann::ordered_json json_of(const std::vector<runtime::pod_need>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) all.push_back({{"what", row.what}, {"bytes", row.bytes}});
  return {{"bytes", runtime::sum_of(rows)}, {"rows", std::move(all)}};
}

void print_json(const runtime::prepared_job& job, const std::optional<pod_figures>& pod) {
  nlohmann::ordered_json line{{"valid", true},
                              {"name", job.spec.name()},
                              {"parameters", job.parameter_count},
                              {"train_records", job.train_records},
                              {"validation_records", job.validation_records},
                              {"validation_records_trained_on", job.validation_records_trained_on},
                              {"epochs", job.spec.train().epochs()},
                              {"steps", job.steps}};
  if (pod) line["kubernetes"] = {{"memory", json_of(pod->needs.memory)}, {"disk", json_of(pod->needs.disk)}};
  if (pod && !pod->ps_memory.empty()) line["kubernetes"]["ps_memory"] = json_of(pod->ps_memory);
  say(stdout, "{}\n", line.dump());
}

/// Each problem of a job file is a line of the message (job/problems.hpp).
int complain_json(const error& what) {
  std::vector<std::string> problems;
  std::istringstream lines(what.message);
  for (std::string line; what.code == error_code::bad_spec && std::getline(lines, line);)
    if (!line.empty()) problems.push_back(line);
  if (problems.empty()) problems.push_back(what.message);
  say(stdout, "{}\n",
      nlohmann::ordered_json{{"valid", false}, {"problems", problems}}.dump(
          -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return static_cast<int>(job::exit_code_for(what.code));
}

int validate(const validate_options& options) {
  const auto wrong = [&](const error& what) { return options.json ? complain_json(what) : complain(what); };
  const auto job = runtime::prepare_new_job(options.file, options.overrides);
  if (!job) return wrong(job.error());
  std::optional<pod_figures> pod;
  if (options.kubernetes) {
    auto figures = figures_of(*job, options);
    if (!figures) return wrong(figures.error());
    pod = std::move(*figures);
  }
  warn_of_trained_on(*job);
  if (options.json) {
    print_json(*job, pod);
    return 0;
  }
  say(stdout, "'{}' is valid: {} parameters, {} training and {} validation records, {} steps in {} epochs\n",
      options.file, job->parameter_count, job->train_records, job->validation_records, job->steps,
      job->spec.train().epochs());
  if (pod)
    say(stdout,
        "{}where any one of the {} pods with which it begins may be away; for 'dlrun manifests' and "
        "'submit': {} --memory {} --disk {} --set data.memory_limit={}MiB\n",
        table_of(pod->needs, pod->ps_memory), pod->hosts_min, pod->options, pod->memory, pod->disk,
        pod->data_mib);
  return 0;
}

} // namespace

void add_validate(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<validate_options>();
  auto* command =
      app.add_subcommand("validate", "Check a job specification and the data it names, without training");
  command->add_option("FILE", options->file, "Job specification (YAML, see docs/spec.md)")->required();
  command->add_option("--set", options->overrides, "Override a value: path=value, e.g. train.epochs=3")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "One line of JSON, on stdout also when it is not valid");
  auto* kubernetes = command->add_flag("--kubernetes", options->kubernetes,
                                       "Also what memory and disk a pod needs (see docs/kubernetes.md)");
  command->add_option("--hosts", options->hosts, "Pods beside the control pod (default: 1)")
      ->check(whole_number(1, kubernetes::slots_max))
      ->needs(kubernetes);
  add_hosts_min(*command, options->hosts_min)->needs(kubernetes);
  add_ps_hosts(*command, options->ps_hosts)->needs(kubernetes);
  add_control_cpus(*command, options->control_cpus)->needs(kubernetes);
  add_archive_claim(*command, options->archive_claim)->needs(kubernetes);
  for (auto* option : add_gpus_of_pods(*command, options->gpus, options->control_gpus))
    option->needs(kubernetes);
  command->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

} // namespace dlrun::cli
