#include "cli/evaluation.hpp"

#include "cli/compute_in_order.hpp"
#include "data/prefetcher.hpp"
#include "data/sampler.hpp"
#include "engine/network.hpp"
#include "runtime/prepared_job.hpp"

#include <algorithm>

namespace dlrun::cli {
namespace {

/// One thread's part of the work.
struct evaluator {
  evaluator(const runtime::given_model& model, const data::dataset& data)
      : parameters(model.parameters)
      , data(data)
      , metrics_size(model.model->layout().metrics().size)
      , network(model.model, static_cast<int>(model.spec.cluster().threads_per_worker())) {}

  /// Metrics of a microbatch, in the places of the metrics tensor.
  result<std::vector<float>> run(const data::validation_sampler& order, std::uint64_t slot) {
    order.records(slot, indices);
    if (auto read = data::read_microbatch(data, indices, microbatch); !read)
      return tl::unexpected(read.error());
    std::vector<float> metrics(metrics_size);
    const dlrun::batch batch{microbatch.records, microbatch.classes, microbatch.values,
                             static_cast<std::int64_t>(indices.size())};
    if (auto done = network.evaluate(parameters, batch, metrics); !done) return tl::unexpected(done.error());
    return metrics;
  }

  std::span<const float> parameters;
  const data::dataset& data;
  std::size_t metrics_size;
  engine::network network;
  std::vector<std::uint64_t> indices;
  data::microbatch microbatch;
};

} // namespace

result<std::shared_ptr<const data::dataset>> open_validation(const runtime::given_model& model) {
  auto spec = model.spec.data();
  if (!spec.has_validation())
    return fail(error_code::bad_usage, "the job has no data.validation: name some, with --set "
                                       "data.validation='{records: FILE, labels: FILE}'");
  const auto seed = model.spec.train().seed();
  const auto decoded = data::decode_job_data(spec, seed, runtime::targets_of(*model.model).kind);
  if (!decoded) return tl::unexpected(decoded.error());
  return data::open_part(*decoded, spec, seed, data::data_part::validation);
}

std::size_t compute_threads(const spec::JobSpec& spec, std::size_t wanted) {
  if (wanted > 0) return wanted;
  const auto each = static_cast<std::size_t>(spec.cluster().threads_per_worker());
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / each);
}

result<dlrun::validation_metrics> evaluate(const runtime::given_model& model, const data::dataset& data,
                                           std::size_t threads) {
  if (auto fits = runtime::check_fits(data, *model.model); !fits) return tl::unexpected(fits.error());
  const data::validation_sampler order{data.record_count(),
                                       static_cast<std::uint64_t>(model.spec.train().microbatch_size())};
  std::vector<std::unique_ptr<evaluator>> workers;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(threads, order.slots()); ++i)
    workers.push_back(std::make_unique<evaluator>(model, data));
  std::vector<double> sums(model.model->layout().metrics().size);
  const auto done = compute_in_order<std::vector<float>>(
      order.slots(), workers.size(),
      [&](std::size_t thread, std::uint64_t slot) { return workers[thread]->run(order, slot); },
      [&](std::uint64_t, std::vector<float>&& metrics) -> result<void> {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(metrics[i]);
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  using layout = engine::parameter_layout;
  const auto of_metrics =
      std::span<const double>{sums}.subspan(layout::first_metric, model.model->metrics().floats());
  return dlrun::validation_metrics{.loss = sums[layout::loss_sum] / static_cast<double>(data.record_count()),
                                   .metrics = model.model->metrics().values(of_metrics),
                                   .samples = data.record_count()};
}

} // namespace dlrun::cli
