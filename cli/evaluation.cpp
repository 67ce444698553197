#include "cli/evaluation.hpp"

#include "cli/compute_in_order.hpp"
#include "data/sampler.hpp"
#include "engine/network.hpp"

#include <algorithm>

namespace dlrun::cli {
namespace {

/// One thread's part of the work.
struct evaluator {
  evaluator(const given_model& model, const data::dataset& data)
      : parameters(model.parameters)
      , data(data)
      , network(model.model, static_cast<int>(model.spec.cluster().threads_per_worker())) {}

  /// Metrics of a microbatch, in the places of the metrics tensor.
  result<std::vector<float>> run(const data::validation_sampler& order, std::uint64_t slot) {
    order.records(slot, indices);
    records.resize(indices.size() * data.record_values());
    labels.resize(indices.size());
    data.read(indices, records, labels);
    std::vector<float> metrics(engine::parameter_layout::metrics_size);
    const engine::batch batch{records, labels, static_cast<std::int64_t>(indices.size())};
    if (auto done = network.evaluate(parameters, batch, metrics); !done) return tl::unexpected(done.error());
    return metrics;
  }

  std::span<const float> parameters;
  const data::dataset& data;
  engine::network network;
  std::vector<std::uint64_t> indices;
  std::vector<float> records;
  std::vector<std::int32_t> labels;
};

} // namespace

std::size_t compute_threads(const spec::JobSpec& spec, std::size_t wanted) {
  if (wanted > 0) return wanted;
  const auto each = static_cast<std::size_t>(spec.cluster().threads_per_worker());
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / each);
}

result<job::validation_metrics> evaluate(const given_model& model, const data::dataset& data,
                                         std::size_t threads) {
  const auto& output = model.model->output_shape();
  if (auto fits = data.check_fits(model.model->input_shape(), output.empty() ? 0 : output.front()); !fits)
    return tl::unexpected(fits.error());
  const data::validation_sampler order{data.record_count(),
                                       static_cast<std::uint64_t>(model.spec.train().microbatch_size())};
  std::vector<std::unique_ptr<evaluator>> workers;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(threads, order.slots()); ++i)
    workers.push_back(std::make_unique<evaluator>(model, data));
  std::vector<double> sums(engine::parameter_layout::metrics_size);
  const auto done = compute_in_order<std::vector<float>>(
      order.slots(), workers.size(),
      [&](std::size_t thread, std::uint64_t slot) { return workers[thread]->run(order, slot); },
      [&](std::uint64_t, std::vector<float>&& metrics) -> result<void> {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(metrics[i]);
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  using index = engine::parameter_layout::metric_index;
  const auto records = static_cast<double>(data.record_count());
  return job::validation_metrics{.loss = sums[index::loss_sum] / records,
                                 .accuracy = sums[index::correct] / records,
                                 .samples = data.record_count()};
}

} // namespace dlrun::cli
