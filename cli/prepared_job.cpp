#include "cli/prepared_job.hpp"

#include "actors/common/evaluation_metrics.hpp"
#include "data/idx_reader.hpp"
#include "engine/optimizer.hpp"
#include "job/spec_reader.hpp"

#include <fcntl.h>

namespace dlrun::cli {
namespace {

result<data::blob> open_and_keep(const std::string& path, prepared_job& job) {
  auto blob = data::open_idx(path);
  if (!blob || blob->fd() < 0) return blob;
  transport::unique_fd own{::fcntl(blob->fd(), F_DUPFD_CLOEXEC, 0)};
  if (!own) return fail(error_code::system, fmt::format("cannot keep '{}' open: too many open files", path));
  job.files[path] = std::move(own);
  return blob;
}

/// Opens a data set and checks it against the model. @returns its number of records.
result<std::uint64_t> open_checked(const spec::DatasetSpec& spec, const engine::model& model,
                                   prepared_job& job) {
  auto records = open_and_keep(spec.records(), job);
  if (!records) return tl::unexpected(records.error());
  auto labels = open_and_keep(spec.labels(), job);
  if (!labels) return tl::unexpected(labels.error());
  auto dataset = data::dataset::open(spec, std::move(*records), std::move(*labels));
  if (!dataset) return tl::unexpected(dataset.error());
  if (model.loss().targets() != engine::target_kind::classes)
    return fail(
        error_code::bad_spec,
        fmt::format("loss {} compares outputs with values, but {} holds class numbers; choose the loss "
                    "cross_entropy",
                    model.loss().name(), (*dataset)->labels_name()));
  const auto& output = model.output_shape();
  if (auto fits = (*dataset)->check_fits(model.input_shape(), output.empty() ? 0 : output.front()); !fits)
    return tl::unexpected(fits.error());
  return (*dataset)->record_count();
}

/// batch_norm cannot normalise over a single value: refuse it here, not after hours in the last step of an
/// epoch.
result<void> check_smallest_microbatch(const data::sampler& sampler, const engine::model& model) {
  const step_id last{sampler.steps_per_epoch() - 1};
  const auto smallest = sampler.records_in_slot(last, {sampler.slots(last) - 1});
  if (smallest >= static_cast<std::uint64_t>(model.min_batch())) return {};
  return fail(error_code::bad_spec,
              fmt::format("layer '{}' needs microbatches of at least {} records, but the last one of each "
                          "epoch has {}: choose a "
                          "train.microbatch_size that leaves a larger rest of {} records",
                          model.min_batch_layer(), model.min_batch(), smallest,
                          sampler.options().record_count));
}

/// All results are kept to the end of the job.
result<void> check_evaluations(const spec::TrainSpec& train, const data::sampler& sampler,
                               const engine::model& model) {
  if (const auto every = common::steps_between_evaluations(train, sampler);
      every && sampler.total_steps() / *every > common::evaluations_max)
    return fail(
        error_code::bad_spec,
        fmt::format("train.evaluate_every: \"{}\" makes {} evaluations in {} steps; at most {}: choose "
                    "at least {} steps",
                    train.evaluate_every(), sampler.total_steps() / *every, sampler.total_steps(),
                    common::evaluations_max, sampler.total_steps() / common::evaluations_max + 1));
  return common::check_watched_metrics(model, train);
}

} // namespace

common::data_files prepared_job::file_descriptors() const {
  common::data_files all;
  for (const auto& [path, fd] : files) all[path] = fd.get();
  return all;
}

result<prepared_job> prepare_job(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides) {
  auto spec = job::read_spec(file, overrides);
  if (!spec) return tl::unexpected(spec.error());
  prepared_job job;
  job.spec = std::move(*spec);
  const auto model = engine::model::build(job.spec.model());
  if (!model) return tl::unexpected(model.error());
  if (auto optimizer = engine::optimizer::build(job.spec.train().optimizer()); !optimizer)
    return tl::unexpected(optimizer.error());
  const auto records = open_checked(job.spec.data().train(), **model, job);
  if (!records) return tl::unexpected(records.error());
  job.train_records = *records;
  if (job.spec.data().has_validation()) {
    const auto validation = open_checked(job.spec.data().validation(), **model, job);
    if (!validation) return tl::unexpected(validation.error());
    job.validation_records = *validation;
  }
  const data::sampler sampler{data::sampler_options_from(job.spec.train(), job.train_records)};
  if (auto fits = check_smallest_microbatch(sampler, **model); !fits) return tl::unexpected(fits.error());
  if (auto fits = check_evaluations(job.spec.train(), sampler, **model); !fits)
    return tl::unexpected(fits.error());
  job.steps = sampler.total_steps();
  for (const auto& tensor : (*model)->layout().tensors())
    if (tensor.kind == engine::block_kind::parameter) job.parameter_count += tensor.size;
  return job;
}

} // namespace dlrun::cli
