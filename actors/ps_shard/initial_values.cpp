#include "actors/ps_shard/initial_values.hpp"

#include "base/thread_team.hpp"
#include "weights/model_weights.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <dlrun/detail/parallel_for.hpp>
#include <fcntl.h>

namespace dlrun::ps_shard {
namespace {

constexpr unsigned initialising_threads_max = 4;
/// Computed in about 5 ms.
constexpr std::size_t initialised_part = std::size_t{1} << 20;

/// From the descriptor that the root checked, where there is one: the file may have been replaced
/// since.
result<weights::safetensors_file> open_weights(const common::job_context& job) {
  const auto& path = job.spec.train().init_from();
  if (job.initial_weights == nullptr) return weights::safetensors_file::open(path);
  base::unique_fd own{::fcntl(job.initial_weights->get(), F_DUPFD_CLOEXEC, 0)};
  if (!own) return fail(error_code::system, fmt::format("cannot duplicate the descriptor of '{}'", path));
  return weights::safetensors_file::from_fd(std::move(own), path);
}

} // namespace

result<void> initial_values(const common::job_context& job, const engine::shard_range& range,
                            std::span<float> out) {
  DLRUN_CHECK(out.size() == range.size, "{} floats for a range of {}", out.size(), range.size);
  const auto threads = base::fair_threads(job.ps_shards(), initialising_threads_max);
  const auto parts = (out.size() + initialised_part - 1) / initialised_part;
  dlrun::detail::parallel_for(parts, threads, [&] {
    return [&](std::size_t part) {
      const auto begin = part * initialised_part;
      job.model->initialise_part(job.spec.train().seed(), range.offset + begin,
                                 out.subspan(begin, std::min(initialised_part, out.size() - begin)));
    };
  });
  const auto& train = job.spec.train();
  if (!train.has_init_from()) return {};
  const auto file = open_weights(job);
  if (!file) return tl::unexpected(file.error());
  const auto& layout = job.model->layout();
  if (auto fits = weights::check_fits(*file, layout, weights::wanted_fit(train)); !fits) return fits;
  return weights::read_part(*file, layout, range.offset, out);
}

} // namespace dlrun::ps_shard
