#include "engine/cuda/pass_memory.hpp"

#include "engine/cuda/device_backend.hpp"
#include "engine/cuda/dry_device.hpp"
#include "engine/network.hpp"

#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::engine {
namespace {

/// Floats of a device that nobody reads.
std::span<float> dry_floats(dry_device& on, std::size_t count) {
  return {static_cast<float*>(on.allocate(count * sizeof(float)).value()), count};
}

/// Targets that each loss takes: class 0, or values of 0.
struct dry_targets {
  std::vector<std::int32_t> classes;
  std::vector<float> values;

  dry_targets(const loss& of, std::int64_t records) {
    if (of.targets() == target_kind::classes)
      classes.resize(static_cast<std::size_t>(records));
    else
      values.resize(static_cast<std::size_t>(records * of.target_values()));
  }
};

} // namespace

result<pass_memory> memory_of_pass(const std::shared_ptr<const model>& model, std::int64_t records,
                                   pass_kind kind, kernels::cuda::precision arithmetic) {
  DLRUN_CHECK(records >= 1, "a pass is over records, not {}", records);
  dry_device device{arithmetic};
  auto made = std::make_unique<device_backend>(model, 1, device, std::chrono::steady_clock::now);
  const auto& backend = *made;
  network dry{model, std::move(made)};
  if (!backend.host_layers().empty())
    return fail(error_code::bad_usage, "the host computes layers of the model");
  const auto count = static_cast<std::size_t>(records * *element_count(model->input_shape()));
  const auto parameters = dry_floats(device, model->layout().flat_size()),
             gradient = dry_floats(device, model->layout().flat_size()), floats = dry_floats(device, count);
  const auto before = device.bytes();
  const dry_targets targets(model->loss(), records);
  const batch all{floats, targets.classes, targets.values, records};
  std::vector<float> metrics(model->layout().metrics().size);
  const auto done = kind == pass_kind::forward ? dry.evaluate(parameters, all, metrics)
                                               : dry.forward_backward(parameters, all, {}, gradient);
  // 0 may be no value that a layer takes; that is looked at when all is allocated.
  if (!done && done.error().code != error_code::bad_data) return tl::unexpected(done.error());
  const auto activations = backend.activation_bytes();
  return pass_memory{activations, device.bytes() - before - activations};
}

std::int64_t records_that_fit(const std::shared_ptr<const model>& model, std::size_t bytes,
                              std::int64_t below, pass_kind kind, kernels::cuda::precision arithmetic) {
  const auto fits = [&](std::int64_t records) {
    const auto needs = memory_of_pass(model, records, kind, arithmetic);
    return needs && needs->sum() <= bytes;
  };
  const std::int64_t least = kind == pass_kind::forward ? 1 : model->min_batch();
  if (below <= least || !fits(least)) return 0;
  std::int64_t good = least, bad = below; // more records take no less
  while (bad - good > 1) {
    const auto middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

} // namespace dlrun::engine
