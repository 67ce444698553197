#include "cli/pod_sizes.hpp"

#include "base/utf8.hpp"
#include "job/quantity.hpp"
#include "kubernetes/pod_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <string_view>

namespace dlrun::cli {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, gib = mib << 10;
constexpr std::uint64_t memory_step = 64 * mib, disk_step = 256 * mib;
/// Of decoded data, where nobody says how much there is: what a pod has room for unless its memory
/// is named, and what that has to leave.
constexpr std::uint64_t data_default = gib, data_min = 64 * mib;

std::string text_of(std::uint64_t bytes, std::uint64_t step) {
  const auto rounded = std::max<std::uint64_t>(1, (bytes + step - 1) / step) * step;
  return rounded % gib == 0 ? fmt::format("{}Gi", rounded / gib) : fmt::format("{}Mi", rounded / mib);
}

std::uint64_t mebibytes(std::uint64_t bytes) { return (bytes + mib - 1) / mib; }

const runtime::pod_need& largest_of(const std::vector<runtime::pod_need>& rows) {
  return *std::ranges::max_element(rows, {}, &runtime::pod_need::bytes);
}

tl::unexpected<error> too_small(std::string_view option, const std::string& value,
                                const std::vector<runtime::pod_need>& rows, const std::string& enough,
                                std::string_view way_out) {
  const auto& most = largest_of(rows);
  return fail(error_code::bad_usage,
              fmt::format("{} {}: a pod of this job needs {} MiB, most of all {} MiB for {}: name {} {} or "
                          "more, or {}; 'dlrun validate FILE --kubernetes' shows the sum",
                          option, base::printable(value), mebibytes(runtime::sum_of(rows)),
                          mebibytes(most.bytes), most.what, option, enough, way_out));
}

/// Of pods of one kind, by an option of the command.
struct memory_option {
  const char* name;
  std::string& size; ///< "": as much as they need
  std::function<std::vector<runtime::pod_need>(std::uint64_t data)> needs;
  std::string_view way_out;
};

/// What is left beside the rest is for data, unless the job says how much that is.
/// @param data bytes; 0: the job does not say
result<void> settle_memory(const memory_option& option, std::uint64_t data, std::uint64_t& data_max) {
  const bool is_open = data == 0;
  if (option.size.empty()) {
    option.size = memory_text(runtime::sum_of(option.needs(is_open ? data_max : data)));
    return {};
  }
  const auto least = option.needs(is_open ? data_min : data);
  const auto there = size_bytes(option.size).value_or(0);
  const auto sum = runtime::sum_of(least);
  if (there < sum) return too_small(option.name, option.size, least, memory_text(sum), option.way_out);
  if (is_open) data_max = std::min(data_max, there - (sum - data_min));
  return {};
}

/// PS shards are to pause before Kubernetes evicts their pod.
tl::unexpected<error> quota_too_large(const spec::JobSpec& job, const pods_wish& wanted, std::uint64_t sum) {
  return fail(
      error_code::bad_usage,
      fmt::format("--disk {}: durability.disk_quota: {} has no room there: with what else is on it a "
                  "pod takes {} MiB, and Kubernetes would evict it where PS shards are to pause: name "
                  "--disk {} or more, or a smaller durability.disk_quota, or none, which then is 0.8 "
                  "of --disk",
                  base::printable(wanted.disk), base::printable(job.durability().disk_quota()),
                  mebibytes(sum), disk_text(sum)));
}

/// What all pods have room for is what the job may take.
result<void> settle_memory(const runtime::job_sizes& sizes, std::uint32_t pods, std::uint64_t data,
                           pods_wish& wanted) {
  const bool is_open = data == 0;
  auto data_max = is_open && wanted.memory.empty() ? data_default : std::numeric_limits<std::uint64_t>::max();
  auto settled = settle_memory(
      {"--memory", wanted.memory,
       [&](std::uint64_t of_data) { return runtime::needs_of_pod(sizes, pods, of_data).memory; },
       "take more --hosts, so that fewer roles are on each, a smaller model or microbatch, or less data by "
       "data.memory_limit"},
      data, data_max);
  if (!settled) return settled;
  if (wanted.ps_hosts > 0)
    if (auto of_ps = settle_memory(
            {"--ps-memory", wanted.ps_memory,
             [&](std::uint64_t of_data) { return runtime::needs_of_ps_pod(sizes, of_data).memory; },
             "take a smaller model, or less data by data.memory_limit"},
            data, data_max);
        !of_ps)
      return of_ps;
  if (is_open) wanted.data_bytes_max = data_max;
  return {};
}

} // namespace

std::optional<std::uint64_t> size_bytes(const std::string& text) {
  if (!is_size(text)) return std::nullopt;
  return kubernetes::memory_bytes(text).value_or(std::numeric_limits<std::uint64_t>::max());
}

std::string memory_text(std::uint64_t bytes) { return text_of(bytes, memory_step); }
std::string disk_text(std::uint64_t bytes) { return text_of(bytes, disk_step); }

std::uint32_t pods_at_least(const pods_wish& wanted) {
  return runtime::pods_at_least(wanted.hosts_min, wanted.control_cpus == 0U);
}

result<runtime::job_sizes> sizes_on_pods(const spec::JobSpec& job, const pods_wish& wanted) {
  auto sizes = runtime::sizes_of(job, hosts_at_least(wanted));
  const bool is_control_without = wanted.gpus > 0 && wanted.control_gpus == 0 && wanted.control_cpus != 0U;
  if (sizes && is_control_without) sizes->pods_without_gpus = 1;
  if (sizes && !wanted.archive_claim.empty()) sizes->archives = true;
  return sizes;
}

result<void> settle_sizes(const spec::JobSpec& job, pods_wish& wanted) {
  const auto sizes = sizes_on_pods(job, wanted);
  if (!sizes) return tl::unexpected(sizes.error());
  const auto pods = pods_at_least(wanted);
  const auto data = job::parse_bytes(job.data().memory_limit()).value_or(0);
  if (auto settled = settle_memory(*sizes, pods, data, wanted); !settled) return settled;
  const auto disk = runtime::needs_of_pod(*sizes, pods, data).disk;
  const auto sum = runtime::sum_of(disk);
  if (wanted.disk.empty()) wanted.disk = disk_text(sum);
  const auto there = size_bytes(wanted.disk).value_or(0);
  if (there >= sum) {
    wanted.disk_quota = sizes->disk_quota ? 0 : runtime::quota_on_disk(*sizes, there);
    return {};
  }
  if (sizes->disk_quota) return quota_too_large(job, wanted, sum);
  return too_small("--disk", wanted.disk, disk, disk_text(sum),
                   "bound what is kept by durability.disk_quota, or log less by a shorter "
                   "durability.max_recovery or durability.log: snapshots");
}

std::string table_of(const runtime::pod_needs& needs, const std::vector<runtime::pod_need>& ps_memory) {
  std::string text;
  const auto line = [&](const std::string& what, std::uint64_t bytes) {
    text += fmt::format("  {:<76} {:>10.1f}\n", what, static_cast<double>(bytes) / mib);
  };
  for (const auto& [name, rows] :
       {std::pair{"memory of a pod", &needs.memory}, std::pair{"memory of a pod for PS shards", &ps_memory},
        std::pair{"disk of a pod", &needs.disk}}) {
    if (rows->empty()) continue;
    text += fmt::format("{}, MiB\n", name);
    for (const auto& row : *rows) line(row.what, row.bytes);
    line("sum", runtime::sum_of(*rows));
  }
  return text;
}

} // namespace dlrun::cli
