#include "actors/ps_shard/initial_values.hpp"

#include "weights/model_weights.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fcntl.h>

namespace dlrun::ps_shard {
namespace {

/// From the descriptor that the root checked, where there is one: the file may have been replaced since.
result<weights::safetensors_file> open_weights(const common::job_context& job) {
  const auto& path = job.spec.train().init_from();
  if (job.initial_weights == nullptr) return weights::safetensors_file::open(path);
  transport::unique_fd own{::fcntl(job.initial_weights->get(), F_DUPFD_CLOEXEC, 0)};
  if (!own) return fail(error_code::system, fmt::format("cannot duplicate the descriptor of '{}'", path));
  return weights::safetensors_file::from_fd(std::move(own), path);
}

} // namespace

result<void> initial_values(const common::job_context& job, const engine::shard_range& range,
                            std::span<float> out) {
  DLRUN_CHECK(out.size() == range.size, "{} floats for a range of {}", out.size(), range.size);
  std::vector<float> flat(job.model->layout().flat_size());
  job.model->initialise(job.spec.train().seed(), flat);
  std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(range.offset), range.size, out.begin());
  const auto& train = job.spec.train();
  if (!train.has_init_from()) return {};
  const auto file = open_weights(job);
  if (!file) return tl::unexpected(file.error());
  const auto& layout = job.model->layout();
  if (auto fits = weights::check_fits(*file, layout, weights::wanted_fit(train)); !fits) return fits;
  return weights::read_part(*file, layout, range.offset, out);
}

} // namespace dlrun::ps_shard
