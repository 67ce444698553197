#include "inference/forward_pass.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::inference {

record_source records_of(const data::dataset& data) {
  return {data.record_count(), [&data](std::span<const std::uint64_t> places, std::span<float> into) {
            return data.read(places, into, {});
          }};
}

pass_options options_from(const spec::JobSpec& spec, std::size_t microbatches_at_once) {
  return {static_cast<std::uint64_t>(spec.train().microbatch_size()),
          {.threads = static_cast<int>(spec.cluster().threads_per_worker())},
          microbatches_at_once};
}

forward_pass::forward_pass(std::shared_ptr<const engine::model> model, const pass_options& options)
    : model_{std::move(model)}
    , options_{options} {
  DLRUN_CHECK(options.microbatch_size > 0 && options.microbatches_at_once > 0,
              "{} microbatches of {} records", options.microbatches_at_once, options.microbatch_size);
}

result<void> forward_pass::make_lanes(std::uint64_t microbatches, std::span<const float> parameters) {
  const auto wanted = std::min<std::uint64_t>(options_.microbatches_at_once, microbatches);
  while (lanes_.size() < std::max<std::uint64_t>(1, wanted)) {
    auto made = engine::make_computer_at(options_.place, model_);
    if (!made) return tl::unexpected(made.error());
    lanes_.push_back(std::make_unique<lane>());
    lanes_.back()->computer = std::move(made->computer);
  }
  for (const auto& on : lanes_)
    if (auto read = on->computer->read({}, parameters); !read) return read;
  return {};
}

result<evaluation> forward_pass::evaluate(std::span<const float> parameters, const data::dataset& data,
                                          const std::atomic<bool>* cancelled) {
  std::vector<double> sums(model_->layout().metrics().size);
  const auto done = run<std::vector<float>>(
      parameters, data.record_count(),
      [&](lane& on, std::span<const std::uint64_t> places) -> result<std::vector<float>> {
        if (cancelled && *cancelled) return fail(error_code::interrupted, "the evaluation is wanted no more");
        return metrics_of(on, data, places);
      },
      [&](std::vector<float>&& metrics) -> result<void> {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(metrics[i]);
        return {};
      });
  if (!done) return tl::unexpected(done.error());
  using index = engine::parameter_layout::metric_index;
  const auto of_metrics =
      std::span<const double>{sums}.subspan(index::first_metric, model_->metrics().floats());
  return evaluation{sums[index::loss_sum], model_->metrics().values(of_metrics), data.record_count()};
}

/// In the places of the metrics tensor.
result<std::vector<float>> forward_pass::metrics_of(lane& on, const data::dataset& data,
                                                    std::span<const std::uint64_t> places) {
  if (auto read = data::read_microbatch(data, places, on.microbatch); !read)
    return tl::unexpected(read.error());
  std::vector<float> metrics(model_->layout().metrics().size);
  const dlrun::batch batch{on.microbatch.records, on.microbatch.classes, on.microbatch.values,
                           static_cast<std::int64_t>(places.size())};
  if (auto done = on.computer->evaluate(batch, metrics); !done) return tl::unexpected(done.error());
  return metrics;
}

result<std::span<const float>> forward_pass::outputs_of(lane& on, const record_source& records,
                                                        std::span<const std::uint64_t> places) {
  on.microbatch.records.resize(places.size() *
                               static_cast<std::size_t>(*element_count(model_->input_shape())));
  on.outputs.resize(places.size() * static_cast<std::size_t>(*element_count(model_->output_shape())));
  if (auto read = records.read(places, on.microbatch.records); !read) return tl::unexpected(read.error());
  const auto size = static_cast<std::int64_t>(places.size());
  if (auto done = on.computer->predict(on.microbatch.records, size, on.outputs); !done)
    return tl::unexpected(done.error());
  return std::span<const float>{on.outputs};
}

} // namespace dlrun::inference
