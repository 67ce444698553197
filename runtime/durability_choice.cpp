#include "runtime/durability_choice.hpp"

#include "base/unique_fd.hpp"
#include "base/write_all.hpp"
#include "data/sampler.hpp"
#include "engine/computer.hpp"
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

constexpr int compute_rounds = 3; // the first one makes the primitives
constexpr std::size_t write_bytes_min = std::size_t{16} << 20;
constexpr std::size_t write_chunk = std::size_t{1} << 20;

/// The shortest of a few: what disturbs makes it longer, never shorter.
result<seconds> microbatch_time(const prepared_job& job) {
  const auto model = engine::model::build(job.spec.model());
  if (!model) return tl::unexpected(model.error());
  const auto size = job.spec.train().microbatch_size();
  std::size_t features = 1;
  for (const auto extent : (*model)->input_shape()) features *= static_cast<std::size_t>(extent);
  std::vector<float> parameters((*model)->layout().flat_size());
  (*model)->initialise(job.spec.train().seed(), parameters);
  // Zero, since that is an index that every embedding has.
  const std::vector<float> records(static_cast<std::size_t>(size) * features, 0.0F);
  const auto& loss = (*model)->loss();
  const bool by_class = loss.targets() == target_kind::classes;
  const auto targets = static_cast<std::size_t>(size * loss.target_values());
  const std::vector<std::int32_t> classes(by_class ? targets : 0);
  const std::vector<float> values(by_class ? 0 : targets);
  const auto threads = static_cast<int>(job.spec.cluster().threads_per_worker());
  const auto made = engine::make_computer_at(job.gpus.place_of({}, threads), *model);
  if (!made) return tl::unexpected(made.error());
  const auto& computer = made->computer;
  if (auto read = computer->read({}, parameters); !read) return tl::unexpected(read.error());
  std::vector<float> memory(parameters.size()); // to the host, as a worker's gradient
  const auto gradient = computer->lend(memory);
  if (!gradient) return tl::unexpected(gradient.error());
  auto best = seconds::max();
  for (int round = 0; round < compute_rounds; ++round) {
    const auto begin = clock::now();
    auto done = computer->forward_backward({records, classes, values, size}, {}, **gradient, nullptr);
    if (done) done = computer->copy(**gradient, 0, memory);
    if (!done) return tl::unexpected(done.error());
    best = std::min(best, seconds{clock::now() - begin});
  }
  return best;
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

result<durability_choice> measure_durability(const prepared_job& job, const std::filesystem::path& folder) {
  const auto slot = microbatch_time(job);
  if (!slot) return tl::unexpected(slot.error());
  const auto rate = write_rate(folder);
  if (!rate) return tl::unexpected(rate.error());
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  const auto workers = std::min<double>(static_cast<double>(job.spec.cluster().workers()), cores);
  const auto step_time = *slot * static_cast<double>(job.spec.train().microbatches_per_step()) / workers;
  const auto bytes = job.parameter_count * sizeof(float);
  return choose_durability(bytes, seconds{static_cast<double>(bytes) / *rate}, step_time);
}

result<std::optional<durability_choice>> settle_durability(prepared_job& job, const run_folder& folder) {
  if (job::durability_log_of(job.spec) != job::durability_log::automatic) return std::nullopt;
  auto choice = measure_durability(job, folder.path());
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
