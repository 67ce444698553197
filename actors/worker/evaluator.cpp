#include "actors/worker/evaluator.hpp"

#include "actors/protocol/bit_patterns.hpp"

#include <bit>

namespace dlrun::worker {

result<std::unique_ptr<evaluator>> evaluator::create(std::shared_ptr<const common::job_context> job,
                                                     worker_id worker, dlrun::incarnation incarnation) {
  auto validation = common::open_dataset(*job, data::data_part::validation);
  if (!validation) return tl::unexpected(validation.error());
  return std::unique_ptr<evaluator>(
      new evaluator(std::move(job), worker, incarnation, std::move(*validation)));
}

evaluator::evaluator(std::shared_ptr<const common::job_context> job, worker_id worker,
                     dlrun::incarnation incarnation, std::shared_ptr<const data::dataset> validation)
    : job_{std::move(job)}
    , worker_{worker}
    , incarnation_{incarnation}
    , validation_{std::move(validation)} {}

std::span<float> evaluator::part_of(ps_shard_id shard) {
  if (parameters_.empty()) parameters_.resize(job_->model->layout().flat_size());
  const auto& range = job_->shards.at(shard.value);
  return std::span{parameters_}.subspan(range.offset, range.size);
}

result<protocol::evaluated> evaluator::run(const protocol::evaluate& of, const std::atomic<bool>& cancelled) {
  if (!network_)
    network_ = std::make_unique<engine::network>(job_->model,
                                                 static_cast<int>(job_->spec.cluster().threads_per_worker()));
  const data::validation_sampler order{validation_->record_count(),
                                       static_cast<std::uint64_t>(job_->spec.train().microbatch_size())};
  protocol::evaluated made{
      .worker = worker_, .incarnation = incarnation_, .timeline = of.timeline, .version = of.version};
  double loss = 0;
  std::vector<double> sums(job_->model->metrics().floats());
  std::vector<float> metrics(job_->model->layout().metrics().size);
  std::vector<std::uint64_t> indices;
  for (std::uint64_t slot = 0; slot < order.slots(); ++slot) {
    if (cancelled)
      return fail(error_code::interrupted, fmt::format("version {} is evaluated no more", of.version));
    order.records(slot, indices);
    if (auto read = data::read_microbatch(*validation_, indices, microbatch_); !read)
      return tl::unexpected(read.error());
    const dlrun::batch batch{microbatch_.records, microbatch_.classes, microbatch_.values,
                             static_cast<std::int64_t>(indices.size())};
    if (auto done = network_->evaluate(parameters_, batch, metrics); !done)
      return tl::unexpected(done.error());
    using index = engine::parameter_layout::metric_index;
    loss += metrics[index::loss_sum];
    made.records += indices.size();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += metrics[index::first_metric + i];
  }
  made.loss_sum_bits = std::bit_cast<std::uint64_t>(loss);
  std::vector<double> values;
  for (const auto& [name, value] : job_->model->metrics().values(sums)) values.push_back(value);
  made.metric_bits = protocol::to_bits(values);
  return made;
}

} // namespace dlrun::worker
