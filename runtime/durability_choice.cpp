#include "runtime/durability_choice.hpp"

#include "base/unique_fd.hpp"
#include "base/write_all.hpp"
#include "job/choices.hpp"
#include "job/run_layout.hpp"
#include "job/spec_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

using seconds = std::chrono::duration<double>;
using clock = std::chrono::steady_clock;

constexpr std::size_t write_bytes_min = std::size_t{16} << 20;
constexpr std::size_t write_chunk = std::size_t{1} << 20;

/// Of one that is as full as the data allows.
double slots_of_step(const prepared_job& job) {
  const auto size = static_cast<std::uint64_t>(job.spec.train().microbatch_size());
  const auto slots = static_cast<std::uint64_t>(job.spec.train().microbatches_per_step());
  return static_cast<double>(std::min(slots, (job.train_records + size - 1) / size));
}

/// Bytes a second that the disk takes, the way to it included.
result<double> write_rate(const std::filesystem::path& folder) {
  const auto file = folder / run_layout::write_rate;
  const base::unique_fd fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  const auto failed = [&] {
    return fail(error_code::system,
                fmt::format("cannot write '{}': {}", file.string(), std::strerror(errno)));
  };
  if (!fd) return failed();
  ::unlink(file.c_str());
  const std::string chunk(write_chunk, 'x');
  const auto begin = clock::now();
  std::size_t written = 0;
  for (; written < write_bytes_min; written += chunk.size())
    if (!base::write_all(fd.get(), chunk)) return failed();
  if (::fdatasync(fd.get()) != 0) return failed();
  return static_cast<double>(written) / seconds{clock::now() - begin}.count();
}

} // namespace

durability_choice choose_durability(std::uint64_t bytes_per_step, seconds log_time, seconds step_time) {
  const double share = log_time / step_time;
  const bool every_step = share <= log_share_max;
  return {every_step ? "every_step" : "snapshots",
          fmt::format("writing down a step's {:.2f} MB takes {:.2f} ms, {:.0f} % of the {:.2f} ms that it is "
                      "computed in; up to {:.0f} % every step is logged",
                      static_cast<double>(bytes_per_step) / 1e6, 1e3 * log_time.count(), 100 * share,
                      1e3 * step_time.count(), 100 * log_share_max)};
}

std::string_view cost_with_copies(std::string_view log) {
  return log == "every_step" ? "no committed step"
                             : "the steps since the newest snapshot that two hosts have";
}

result<durability_choice> measure_durability(const prepared_job& job, const std::filesystem::path& folder,
                                             const trial_way& try_one) {
  const auto tried = try_one(job);
  if (!tried) return tl::unexpected(tried.error());
  if (!tried->time)
    return durability_choice{"snapshots",
                             fmt::format("how long a step takes could not be tried, on records of zeros: {}; "
                                         "snapshots cost less where steps are short",
                                         tried->why)};
  const auto rate = write_rate(folder);
  if (!rate) return tl::unexpected(rate.error());
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  const auto workers = std::min<double>(static_cast<double>(job.spec.cluster().workers()), cores);
  const auto step_time = *tried->time * slots_of_step(job) / workers;
  const auto bytes = job.parameter_count * sizeof(float);
  auto choice = choose_durability(bytes, seconds{static_cast<double>(bytes) / *rate}, step_time);
  if (!tried->why.empty()) choice.reason += "; a microbatch was tried, on records of zeros: " + tried->why;
  return choice;
}

result<std::optional<durability_choice>> settle_durability(prepared_job& job, const run_folder& folder,
                                                           const trial_way& try_one) {
  if (job::durability_log_of(job.spec) != job::durability_log::automatic) return std::nullopt;
  auto choice = measure_durability(job, folder.path(), try_one);
  if (!choice) return tl::unexpected(choice.error());
  // Where it is auto that is said with its own reason.
  if (const auto replicas = job::replicas_of(job.spec).value_or(1); replicas > 1)
    choice->reason += fmt::format("; with durability.replicas: {} a host that is lost with its disk costs {}",
                                  replicas, cost_with_copies(choice->log));
  job.spec.mutable_durability()->set_log(choice->log);
  if (auto kept = job::write_spec_file(folder.spec_file(), job.spec); !kept)
    return tl::unexpected(kept.error());
  return *choice;
}

} // namespace dlrun::runtime
