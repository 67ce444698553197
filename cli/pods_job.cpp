#include "cli/pods_job.hpp"

#include "base/utf8.hpp"
#include "cli/pod_sizes.hpp"
#include "cli/pods_gpus.hpp"
#include "cli/pods_journal.hpp"
#include "job/choices.hpp"
#include "job/field_rules.hpp"
#include "job/source_text.hpp"
#include "job/spec_reader.hpp"
#include "runtime/replicas_choice.hpp"

#include <cmath>
#include <fmt/format.h>

namespace dlrun::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// With the lists of names that Kubernetes keeps of it an object may have 1 MiB.
constexpr std::size_t job_bytes_max = 900'000;

/// Where the job file of a pod says that something is, by the key that says so.
struct named_path {
  std::string key;
  std::string path;
};

void add_paths(const Message& message, const std::string& above, std::vector<named_path>& all) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* field : fields) {
    const auto key = above.empty() ? field->name() : above + "." + field->name();
    if (field->is_repeated()) continue; // no list has paths
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      add_paths(message.GetReflection()->GetMessage(message, field), key, all);
    else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && job::rule_of(*field).path())
      all.push_back({key, message.GetReflection()->GetString(message, field)});
  }
}

bool is_below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

/// Relative ones are relative to the job file, beside which nothing is in a pod.
/// @param job with relative paths as they are
result<void> check_paths(const spec::JobSpec& job, const pods_wish& wanted) {
  std::vector<named_path> all;
  add_paths(job, "", all);
  for (const auto& [key, path] : all) {
    if (!path.starts_with('/'))
      return fail(
          error_code::bad_spec,
          fmt::format("{}: \"{}\" is relative, and in a pod nothing lies beside the job file: write the "
                      "full path that it has in the image, or {}/... for what --data-claim names",
                      key, base::printable(path), data_folder));
    if (key == "train.init_from" && !wanted.data_claim.empty() && is_below(path, data_folder))
      return fail(
          error_code::bad_spec,
          fmt::format("{}: \"{}\" has to be in every pod, and --data-claim is mounted in the control pod "
                      "alone: put it into the image",
                      key, base::printable(path)));
  }
  return {};
}

/// Where metrics are served follows from options.
result<void> settle_metrics(const spec::JobSpec& job, pods_metrics& metrics) {
  const auto& wanted = job.observability();
  if (wanted.has_prometheus_tls())
    return fail(
        error_code::bad_spec,
        "observability.prometheus_tls: on pods its files are in a Secret: leave this out, and name that "
        "Secret with --metrics-secret");
  if (wanted.prometheus_port() == 0) return {};
  if (wanted.prometheus_port() == join_port && !metrics.secret.empty())
    return fail(
        error_code::bad_spec,
        fmt::format("observability.prometheus_port: hosts join at port {} of the control pod: name another",
                    join_port));
  if (wanted.prometheus_port() == probes_port && !metrics.secret.empty())
    return fail(error_code::bad_spec,
                fmt::format("observability.prometheus_port: kubelets probe the control pod at port {}: name "
                            "another",
                            probes_port));
  metrics.port = static_cast<std::uint16_t>(wanted.prometheus_port());
  return {};
}

/// What a job may not want on pods.
result<void> check_job(const spec::JobSpec& job, const pods_wish& wanted) {
  const auto refuse = [](std::string why) { return fail(error_code::bad_spec, std::move(why)); };
  if (job::placement_of(job) == job::placement::threads)
    return refuse(
        "cluster.placement: with \"threads\" all roles are in one process, and so in one pod: let it be "
        "\"processes\"");
  if (job::durability_log_of(job) == job::durability_log::off)
    return refuse(
        "durability.log: with \"off\" nothing is kept to go on with, and a container that is started "
        "again could not: let it be \"auto\"");
  if (job.durability().has_archive())
    return refuse("durability.archive: on pods its folder is in a claim: leave this out, and name that claim "
                  "with --archive-claim");
  if (!wanted.archive_claim.empty() && job.cluster().journal().has_etcd())
    return refuse("cluster.journal: one in an etcd is not archived: leave --archive-claim out, or let the "
                  "journal be in the run folder");
  const auto hosts = hosts_at_least(wanted);
  if (const auto replicas = runtime::replicas_on(job, hosts); replicas > hosts)
    return refuse(
        fmt::format("durability.replicas: {0} stores of each PS shard are on as many hosts, and the job "
                    "begins with {1}: --hosts-min {2}, or let it be auto",
                    replicas, hosts, replicas - wanted.ps_hosts));
  return {};
}

} // namespace

result<void> read_pods_job(const std::string& file, pods_wish& wanted) {
  auto text = job::read_source_text(file, [](auto) { return job::spec_bytes_max; });
  if (!text) return tl::unexpected(text.error());
  auto job = job::parse_spec(*text, file, "", wanted.overrides); // relative paths stay so
  if (!job) return tl::unexpected(job.error());
  if (text->size() > job_bytes_max)
    return fail(error_code::bad_spec,
                fmt::format("{}: has {} bytes, and in a ConfigMap of Kubernetes it may have {}", file,
                            text->size(), job_bytes_max));
  if (auto fine = check_job(*job, wanted); !fine) return fine;
  if (auto fine = settle_metrics(*job, wanted.metrics); !fine) return fine;
  if (auto fine = check_gpus(*job, wanted); !fine) return fine;
  if (wanted.settles_device) job->mutable_cluster()->set_device("cuda");
  if (wanted.gpus > 0) wanted.idle_gpus = tell_idle_gpus(*job, wanted);
  if (auto fine = check_paths(*job, wanted); !fine) return fine;
  if (auto settled = settle_journal(*job, wanted); !settled) return settled;
  if (auto settled = settle_sizes(*job, wanted); !settled) return settled;
  if (wanted.name.empty()) wanted.name = job->name();
  wanted.job_file = std::move(*text);
  wanted.has_copies = runtime::replicas_on(*job, hosts_at_least(wanted)) > 1;
  wanted.leave_grace =
      std::chrono::seconds{static_cast<std::int64_t>(std::ceil(job->cluster().leave_grace_s()))};
  return {};
}

} // namespace dlrun::cli
