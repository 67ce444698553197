#include "cli/pods_gpus.hpp"

#include "cli/option_refusal.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::cli {
namespace {

/// What of the job asks for GPUs, which there are not.
result<void> check_without(const spec::JobSpec& job) {
  const auto refuse = [](std::string_view key, std::string_view value, std::string_view otherwise) {
    return fail(
        error_code::bad_spec,
        fmt::format("{}: with {} workers need GPUs, and these pods ask for none: say how many each is to "
                    "have with --gpus, or {}",
                    key, value, otherwise));
  };
  if (job::device_of(job) == job::device::cuda)
    return refuse("cluster.device", "\"cuda\"", "let it be \"cpu\"");
  if (job::precision_of(job) != job::precision::fp32)
    return refuse("train.precision", fmt::format("\"{}\"", job.train().precision()), "let it be \"fp32\"");
  if (job.cluster().gpus_size() > 0 && job::device_of(job) != job::device::cpu)
    return refuse("cluster.gpus", "numbers of GPUs", "leave it out");
  return {};
}

} // namespace

bool needs_gpus(const spec::JobSpec& job) { return !check_without(job); }

result<void> settle_gpus(const gpu_options& given, pods_wish& wanted) {
  auto& nodes = wanted.nodes;
  if (!given.resource.empty()) nodes.gpu_resource = given.resource;
  nodes.gpu_runtime_class = given.runtime_class;
  if (!is_extended_resource(nodes.gpu_resource))
    return refuse_option(
        "--gpu-resource", nodes.gpu_resource,
        "expected a name that nodes call their GPUs by, with its domain, as in nvidia.com/gpu");
  if (!given.runtime_class.empty() && !is_dns_name(given.runtime_class))
    return refuse_option("--gpu-runtime-class", given.runtime_class,
                         "no RuntimeClass can have that name: small letters, digits, '-' and '.'");
  if (wanted.gpus == 0) {
    const auto alone = [](std::string_view option, const std::string& value) {
      return refuse_option(option, value,
                           "it is of pods with GPUs: say how many with --gpus, or leave it out");
    };
    if (given.control) return alone("--control-gpus", std::to_string(*given.control));
    if (!given.resource.empty()) return alone("--gpu-resource", given.resource);
    if (!given.runtime_class.empty()) return alone("--gpu-runtime-class", given.runtime_class);
    return {};
  }
  const bool computes = wanted.control_cpus != 0U;
  if (!computes && given.control.value_or(0) > 0)
    return refuse_option(
        "--control-gpus", std::to_string(*given.control),
        fmt::format(
            "with {} no worker is in the control pod, and its GPUs would be idle: leave one of them out",
            wanted.ps_hosts > 0 ? "--ps-hosts" : "--control-cpus 0"));
  wanted.control_gpus = given.control.value_or(computes ? wanted.gpus : 0);
  return {};
}

result<void> check_gpus(const spec::JobSpec& job, pods_wish& wanted) {
  if (wanted.gpus == 0) return check_without(job);
  const auto device = job::device_of(job);
  if (device == job::device::cpu)
    return refuse_option(
        "--gpus", std::to_string(wanted.gpus),
        "with cluster.device: cpu the job computes on processors: let that be \"cuda\", or leave "
        "--gpus out");
  const auto least = wanted.control_gpus > 0 ? std::min(wanted.gpus, wanted.control_gpus) : wanted.gpus;
  for (const auto number : job.cluster().gpus())
    if (number >= least)
      return fail(
          error_code::bad_spec,
          fmt::format("cluster.gpus: there is no GPU {} in each pod: those of a pod are numbered from 0 to "
                      "{} (--gpus, --control-gpus); leave the key out, and workers use all of them",
                      number, least - 1));
  wanted.settles_device = device == job::device::automatic;
  return {};
}

std::string tell_idle_gpus(const spec::JobSpec& job, const pods_wish& wanted) {
  const auto named = static_cast<std::uint32_t>(job.cluster().gpus_size());
  const auto used_of = [&](std::uint32_t there) { return named > 0 ? std::min(named, there) : there; };
  const auto used = std::uint64_t{wanted.hosts} * used_of(wanted.gpus) + used_of(wanted.control_gpus);
  const auto there = std::uint64_t{wanted.hosts} * wanted.gpus + wanted.control_gpus;
  const auto busy = std::min(used, static_cast<std::uint64_t>(job.cluster().workers()));
  if (busy == there) return "";
  return fmt::format("of the {} GPUs of {} pods {} have no worker: cluster.workers is {}{}", there,
                     wanted.hosts + (wanted.control_gpus > 0 ? 1 : 0), there - busy, job.cluster().workers(),
                     used < there ? fmt::format(", and cluster.gpus names {} of each pod", named) : "");
}

} // namespace dlrun::cli
