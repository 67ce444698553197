#include "runtime/device_choice.hpp"

#include "job/choices.hpp"
#include "kernels/cuda/module.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace dlrun::runtime {
namespace {

using kernels::cuda::compute_capability_min;
using kernels::cuda::device_properties;

tl::unexpected<error> refused(std::string why) { return fail(error_code::bad_usage, std::move(why)); }

kernels::cuda::precision arithmetic_of(const spec::JobSpec& spec) {
  switch (job::precision_of(spec)) {
  case job::precision::fp32: break;
  case job::precision::tf32: return kernels::cuda::precision::tf32;
  case job::precision::bf16: return kernels::cuda::precision::bf16;
  }
  return kernels::cuda::precision::fp32;
}

/// Of both the bits are the same.
bool computes_as(const device_properties& one, const device_properties& other) {
  return one.name == other.name && one.compute_capability == other.compute_capability &&
         one.multiprocessors == other.multiprocessors && one.libraries == other.libraries;
}

result<void> check_gpu(int number, const std::vector<device_properties>& there) {
  if (static_cast<std::size_t>(number) >= there.size())
    return refused(fmt::format("cluster.gpus: there is no GPU {}: the host has {}, numbered from 0 as "
                               "'nvidia-smi -L' lists them; name some of these",
                               number, there.size()));
  const auto& gpu = there[static_cast<std::size_t>(number)];
  if (gpu.compute_capability >= compute_capability_min) return {};
  return refused(fmt::format("GPU {}, '{}', is too old: it has the compute capability {}.{}, and {}.{} is "
                             "needed; name others in cluster.gpus",
                             number, gpu.name, gpu.compute_capability / 10, gpu.compute_capability % 10,
                             compute_capability_min / 10, compute_capability_min % 10));
}

/// The GPUs, and what they are called.
struct found_gpus {
  engine::gpu_set gpus;
  std::string text;
};

result<found_gpus> find_gpus(const spec::JobSpec& spec) {
  const auto module = kernels::cuda::load_module(kernels::cuda::module_path());
  if (!module) return tl::unexpected(module.error());
  const auto there = (*module)->devices();
  if (!there) return tl::unexpected(there.error());
  auto numbers = choose_gpus(spec, *there);
  if (!numbers) return tl::unexpected(numbers.error());
  const auto& first = (*there)[static_cast<std::size_t>(numbers->front())];
  auto text = fmt::format("{} {}, {} ({})", numbers->size() == 1 ? "GPU" : "GPUs", fmt::join(*numbers, ", "),
                          first.name, first.libraries);
  return found_gpus{{*module, std::move(*numbers), arithmetic_of(spec)}, std::move(text)};
}

/// This is the only place that reads the variable.
result<void> check_environment(const spec::JobSpec& spec) {
  const char* const set = std::getenv("NVIDIA_TF32_OVERRIDE");
  return check_override(spec, set == nullptr ? "" : set);
}

/// What is to be changed in a job that needs GPUs so that it does not; nothing where it does not.
std::vector<std::string_view> needs_of_gpus(const spec::JobSpec& spec) {
  std::vector<std::string_view> changes;
  if (job::device_of(spec) == job::device::cuda) changes.emplace_back("set cluster.device: cpu");
  if (spec.cluster().gpus_size() > 0) changes.emplace_back("leave cluster.gpus out");
  if (job::precision_of(spec) != job::precision::fp32) changes.emplace_back("set train.precision: fp32");
  return changes;
}

/// What is wrong, with what can be done about it in the job.
tl::unexpected<error> without_gpus(const error& why, std::string_view way_out) {
  return fail(why.code, fmt::format("{}; or {}", why.message, way_out));
}

} // namespace

result<std::vector<int>> choose_gpus(const spec::JobSpec& spec, const std::vector<device_properties>& there) {
  if (there.empty()) return refused("the host has no GPU that CUDA can use: see what 'nvidia-smi -L' lists");
  std::vector<int> chosen(spec.cluster().gpus().begin(), spec.cluster().gpus().end());
  if (chosen.empty()) {
    chosen.resize(there.size());
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  for (const int number : chosen) {
    if (auto fine = check_gpu(number, there); !fine) return tl::unexpected(fine.error());
    const auto& first = there[static_cast<std::size_t>(chosen.front())];
    const auto& gpu = there[static_cast<std::size_t>(number)];
    if (!computes_as(first, gpu))
      return refused(fmt::format("GPU {}, '{}' with {} multiprocessors, and GPU {}, '{}' with {}, would not "
                                 "compute the same bits: name GPUs of one model in cluster.gpus",
                                 chosen.front(), first.name, first.multiprocessors, number, gpu.name,
                                 gpu.multiprocessors));
  }
  return chosen;
}

result<void> check_override(const spec::JobSpec& spec, std::string_view override) {
  if (override.empty() || (override != "0") == (job::precision_of(spec) == job::precision::tf32)) return {};
  return refused(
      fmt::format("the environment has NVIDIA_TF32_OVERRIDE={}, with which GPUs {}compute in TF32, "
                  "and train.precision is {}: unset it",
                  override, override == "0" ? "do not " : "", kernels::cuda::name_of(arithmetic_of(spec))));
}

result<engine::gpu_set> open_gpus(const spec::JobSpec& spec) {
  if (job::device_of(spec) != job::device::cuda) return engine::gpu_set{};
  if (auto fine = check_environment(spec); !fine) return tl::unexpected(fine.error());
  auto found = find_gpus(spec);
  if (!found) return tl::unexpected(found.error());
  return std::move(found->gpus);
}

result<engine::gpu_set> open_gpu(const spec::JobSpec& spec, int number) {
  const auto module = kernels::cuda::load_module(kernels::cuda::module_path());
  if (!module) return tl::unexpected(module.error());
  return engine::gpu_set{*module, {number}, arithmetic_of(spec)};
}

result<std::optional<device_choice>> settle_device(prepared_job& job, bool has_gpus_here) {
  auto& cluster = *job.spec.mutable_cluster();
  if (job::device_of(job.spec) == job::device::cpu) return std::nullopt;
  const bool is_auto = job::device_of(job.spec) == job::device::automatic;
  if (!has_gpus_here && !is_auto) return std::nullopt;
  if (!has_gpus_here)
    return refused(
        "cluster.device: \"auto\" is settled by the GPUs of the root's host, and the list of hosts "
        "says gpus: none of it: let it be \"cuda\" or \"cpu\"");
  auto found = find_gpus(job.spec);
  if (const auto needs = needs_of_gpus(job.spec); !found && !needs.empty())
    return without_gpus(found.error(), fmt::format("{}", fmt::join(needs, " and ")));
  if (found) {
    if (auto fine = check_environment(job.spec); !fine) return tl::unexpected(fine.error());
    job.gpus = std::move(found->gpus);
  }
  if (!is_auto) return std::nullopt;
  device_choice choice{found ? "cuda" : "cpu", found ? found->text : found.error().message};
  cluster.set_device(choice.device);
  return choice;
}

result<void> settle_device_again(prepared_job& job, bool has_gpus_here) {
  if (!has_gpus_here) return {};
  auto gpus = open_gpus(job.spec);
  if (!gpus) return without_gpus(gpus.error(), "train again in another folder with cluster.device: cpu");
  job.gpus = std::move(*gpus);
  return {};
}

} // namespace dlrun::runtime
