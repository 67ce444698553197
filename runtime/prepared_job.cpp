#include "runtime/prepared_job.hpp"

#include "actors/common/evaluation_metrics.hpp"
#include "base/own_machine.hpp"
#include "data/augmentation.hpp"
#include "data/equal_records.hpp"
#include "engine/optimizer.hpp"
#include "engine/update_rule.hpp"
#include "inference/model_data.hpp"
#include "job/choices.hpp"
#include "job/quantity.hpp"
#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "observability/run_publisher.hpp"
#include "runtime/descriptor_limit.hpp"
#include "weights/initial_weights.hpp"
#include "weights/model_weights.hpp"

#include <algorithm>
#include <fcntl.h>
#include <functional>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

/// For the comment that heads the file, and what a resumed run adds.
constexpr std::size_t spec_file_spare = 16 * 1024;
/// Of all parameters there are at least so many in memory: two versions, and a gradient.
constexpr double parameter_copies_min = 3;

/// What cannot fit into the host is refused here, and not by whoever runs out of memory first.
result<void> check_memory(const engine::model& model) {
  const auto gibibytes = [](double bytes) { return bytes / (1024.0 * 1024.0 * 1024.0); };
  const auto there = static_cast<double>(base::usable_memory_bytes());
  const double bytes = static_cast<double>(model.layout().flat_size()) * sizeof(float);
  if (parameter_copies_min * bytes <= there) return {};
  const auto& largest = *std::ranges::max_element(model.layout().tensors(), {}, &engine::tensor_info::size);
  return fail(
      error_code::bad_spec,
      fmt::format("the parameters of the model take {:.1f} GiB, '{}' most of all, and a job has them "
                  "at least {:.0f} times; dlrun may use {:.1f} GiB of memory here: make layers smaller",
                  gibibytes(bytes), largest.name, parameter_copies_min, gibibytes(there)));
}

/// The weights that training starts from. What is checked here is what roles read, whatever happens
/// to the file; its digest goes into the specification as used.
result<void> settle_weights(const engine::model& model, prepared_job& job) {
  auto& train = *job.spec.mutable_train();
  if (!train.has_init_from()) return {};
  const auto initial = weights::open_initial_weights(train, model.layout());
  if (!initial) return tl::unexpected(initial.error());
  train.set_init_sha256(initial->sha256);
  base::unique_fd own{::fcntl(initial->file.fd(), F_DUPFD_CLOEXEC, 0)};
  if (!own)
    return fail(error_code::system,
                fmt::format("cannot keep '{}' open: too many open files", train.init_from()));
  job.initial_weights = std::make_shared<const base::unique_fd>(std::move(own));
  return {};
}

/// Names of classes that the data taught: one too many is often one mistyped, and that is the
/// rarest.
result<void> check_class_names(const data::dataset& data,
                               const google::protobuf::RepeatedPtrField<std::string>& names,
                               const engine::model& model) {
  const auto wanted = inference::targets_of(model);
  if (names.empty() || wanted.kind != target_kind::classes || names.size() <= wanted.outputs) return {};
  struct seen {
    std::uint64_t first = 0, count = 0;
  };
  std::vector<seen> of(static_cast<std::size_t>(names.size()));
  for (std::uint64_t i = 0; i < data.record_count(); ++i) {
    const auto number = data.class_of(i);
    if (!number) return tl::unexpected(number.error());
    auto& one = of.at(static_cast<std::size_t>(*number));
    if (one.count++ == 0) one.first = data.number_in_files(i);
  }
  const auto rarest = std::ranges::min_element(of, {}, &seen::count) - of.begin();
  const auto& [first, count] = of[static_cast<std::size_t>(rarest)];
  const auto where =
      count == 0
          ? "none of the records that are trained on has it, so one of data.validation does"
          : fmt::format("{} of {} records that are trained on has it, the first is record {}, counted from 0",
                        count, data.record_count(), first);
  return fail(error_code::bad_data,
              fmt::format("{}: there are {} classes, but the model has only {} outputs. The rarest class is "
                          "\"{}\": {}. Correct the data, or give the model more outputs",
                          data.targets_name(), names.size(), wanted.outputs,
                          base::printable(names[static_cast<int>(rarest)]), where));
}

/// Opens one part of the data and checks it against the model. @returns its number of records.
result<std::uint64_t> open_checked(const prepared_job& job, const engine::model& model,
                                   data::data_part part) {
  const auto dataset = data::open_part(*job.data, job.spec.data(), job.spec.train().seed(), part);
  if (!dataset) return tl::unexpected(dataset.error());
  const auto& trained = job.spec.data().train();
  const auto& names = trained.has_csv() ? trained.csv().classes() : trained.image_folder().classes();
  if (auto fits = check_class_names(**dataset, names, model); !fits) return tl::unexpected(fits.error());
  if (auto fits = inference::check_fits(**dataset, model); !fits) return tl::unexpected(fits.error());
  if (part == data::data_part::validation) return (*dataset)->record_count();
  if (auto augmented = data::augmentation::build(job.spec.data().train().augment(), **dataset); !augmented)
    return tl::unexpected(augmented.error());
  return (*dataset)->record_count();
}

/// What the data taught is kept with the specification, which must be readable again.
result<void> check_spec_size(const spec::JobSpec& spec) {
  const auto text = job::written_spec(spec);
  if (text.size() + spec_file_spare > job::written_spec_bytes_max)
    return fail(
        error_code::bad_data,
        fmt::format(
            "data.train: with all columns and vocabularies written out the specification has {} bytes, and "
            "at most {} can be kept: name fewer columns, or use format npy",
            text.size(), job::written_spec_bytes_max - spec_file_spare));
  const auto again = job::parse_spec(text, "the specification as the run would keep it", "/");
  return again ? result<void>{} : tl::unexpected(again.error());
}

/// A step of more microbatches than records is a mistake: they could not have one record each.
result<void> check_microbatches(const data::sampler_options& options) {
  if (options.microbatches_per_step <= options.record_count) return {};
  return fail(
      error_code::bad_spec,
      fmt::format("train.microbatches_per_step: {} microbatches a step are more than the {} records of "
                  "data.train; choose fewer",
                  options.microbatches_per_step, options.record_count));
}

/// batch_norm cannot normalise over a single value: refuse it here, not after hours in the last
/// step of an epoch.
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

/// Each PS shard owns whole blocks, at least one.
result<void> check_ps_shards(const spec::JobSpec& spec, const engine::model& model) {
  const auto blocks = model.layout().blocks().size();
  if (static_cast<std::size_t>(spec.cluster().ps_shards()) <= blocks) return {};
  return fail(
      error_code::bad_spec,
      fmt::format("cluster.ps_shards: {} PS shards are more than the {} that the model's parameters can be "
                  "shared out to, in blocks of at most {} of one tensor; choose fewer",
                  spec.cluster().ps_shards(), blocks, engine::parameter_layout::block_size));
}

/// The snapshot of the last version is never dropped, so a quota that has no room for it is used up
/// for sure.
result<void> check_disk_quota(const spec::JobSpec& spec, const engine::model& model) {
  const auto quota = job::parse_bytes(spec.durability().disk_quota()).value_or(0);
  if (quota == 0 || job::durability_log_of(spec) == job::durability_log::off) return {};
  const auto optimizer = engine::optimizer::build(spec.train().optimizer());
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto snapshot =
      model.layout().flat_size() * sizeof(float) * (1 + optimizer->state_floats_per_parameter());
  if (snapshot <= quota) return {};
  return fail(
      error_code::bad_spec,
      fmt::format("durability.disk_quota: {} has no room for a single snapshot of the model and its "
                  "optimizer's state, which takes {} bytes; choose several times that, or 0 for no limit",
                  spec.durability().disk_quota(), snapshot));
}

/// PS shards exchange the squares of each block: a message has room for so many.
result<void> check_norm_exchange(const spec::JobSpec& spec, const engine::model& model) {
  if (!spec.train().has_clip_norm()) return {};
  const auto shards = static_cast<std::uint32_t>(spec.cluster().ps_shards());
  for (const auto& range : engine::place_blocks(model.layout(), shards)) {
    const auto blocks = engine::parameter_blocks(model.layout(), range);
    if (blocks > protocol::norm_partials_max)
      return fail(error_code::bad_spec,
                  fmt::format("train.clip_norm takes at most {} blocks of {} parameters in one PS shard, but "
                              "with cluster.ps_shards = {} one has {}: choose more PS shards, or leave "
                              "clip_norm out (clip_value has no such limit)",
                              protocol::norm_partials_max, engine::parameter_layout::block_size, shards,
                              blocks));
  }
  return {};
}

/// What a layer computes is bf16 with that precision, and numbers of rows above 256 are not all
/// numbers of bf16. Those of records are read as they are.
result<void> check_row_numbers(const spec::JobSpec& spec, const engine::model& model) {
  constexpr std::int64_t rows_max = 257;
  if (job::precision_of(spec) != job::precision::bf16) return {};
  const auto of_records = model.rows_read();
  for (const auto& node : model.nodes()) {
    const auto& layer = *node.layer;
    if (layer.rows() <= rows_max ||
        std::ranges::find(of_records, layer.name(), &engine::row_numbers::layer) != of_records.end())
      continue;
    return fail(
        error_code::bad_spec,
        fmt::format("train.precision: embedding '{}' has {} rows, and reads their numbers from a layer "
                    "that computes in bf16, which does not have all numbers above 256; let it read "
                    "values of a record, or write tf32",
                    layer.name(), layer.rows()));
  }
  return {};
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
  return common::check_watched_metrics(model.metrics().names(), train);
}

/// What gives the data that a specification says, for a model whose loss takes such targets.
using data_source_of_job = std::function<result<data::job_data>(spec::JobSpec& spec, target_kind wanted)>;

result<prepared_job> prepare_from(spec::JobSpec spec, const data_source_of_job& decode) {
  prepared_job job;
  job.spec = std::move(spec);
  const auto model = engine::model::build(job.spec.model());
  if (!model) return tl::unexpected(model.error());
  if (auto fits = check_memory(**model); !fits) return tl::unexpected(fits.error());
  if (auto rule = engine::update_rule::build(job.spec.train(), {}); !rule)
    return tl::unexpected(rule.error()); // how long the training is does not matter for that
  for (const auto& fits : {check_ps_shards(job.spec, **model), check_disk_quota(job.spec, **model),
                           check_norm_exchange(job.spec, **model), check_row_numbers(job.spec, **model),
                           weights::check_writable((*model)->layout())})
    if (!fits) return tl::unexpected(fits.error());
  if (auto settled = settle_weights(**model, job); !settled) return tl::unexpected(settled.error());
  auto decoded = decode(job.spec, inference::targets_of(**model).kind);
  if (!decoded) return tl::unexpected(decoded.error());
  if (auto fits = check_spec_size(job.spec); !fits) return tl::unexpected(fits.error());
  job.data = std::make_shared<const data::job_data>(std::move(*decoded));
  const auto records = open_checked(job, **model, data::data_part::training);
  if (!records) return tl::unexpected(records.error());
  job.train_records = *records;
  if (job.spec.data().has_validation()) {
    const auto validation = open_checked(job, **model, data::data_part::validation);
    if (!validation) return tl::unexpected(validation.error());
    job.validation_records = *validation;
  }
  const data::sampler sampler{data::sampler_options_from(job.spec.train(), job.train_records)};
  if (auto fits = check_microbatches(sampler.options()); !fits) return tl::unexpected(fits.error());
  if (auto fits = check_smallest_microbatch(sampler, **model); !fits) return tl::unexpected(fits.error());
  if (auto fits = check_evaluations(job.spec.train(), sampler, **model); !fits)
    return tl::unexpected(fits.error());
  job.steps = sampler.total_steps();
  for (const auto& tensor : (*model)->layout().tensors())
    if (tensor.kind == tensor_kind::parameter) job.parameter_count += tensor.size;
  return job;
}

} // namespace

result<prepared_job> prepare_job(spec::JobSpec spec) {
  return prepare_from(std::move(spec), [](spec::JobSpec& of, target_kind wanted) {
    return data::decode_job_data(*of.mutable_data(), of.train().seed(), wanted);
  });
}

result<prepared_job> prepare_job(spec::JobSpec spec, data::job_data decoded) {
  return prepare_from(std::move(spec), [&](spec::JobSpec&, target_kind) -> result<data::job_data> {
    return std::move(decoded);
  });
}

result<prepared_job> prepare_new_job(spec::JobSpec spec) {
  if (spec.train().skip_size() > 0 || spec.train().has_from())
    return fail(error_code::bad_spec,
                "train.skip and train.from are for a run that is resumed: 'dlrun resume DIR --skip "
                "STEP:SLOT' and '--from STEP' write them");
  if (auto enough = check_descriptor_limit(spec); !enough) return tl::unexpected(enough.error());
  auto job = prepare_job(spec);
  if (job) job->asked = std::move(spec);
  if (!job || !job->data->validation) return job;
  const auto equal =
      data::count_equal(data::all_records(*job->data->validation), data::all_records(job->data->training));
  if (!equal) return tl::unexpected(equal.error());
  job->validation_records_trained_on = *equal;
  return job;
}

result<void> open_metrics_port(prepared_job& job) {
  auto opened = observability::open_port(job.spec.observability());
  if (!opened) return tl::unexpected(opened.error());
  job.metrics = std::move(*opened);
  return {};
}

result<prepared_job> prepare_new_job(const std::filesystem::path& file,
                                     const std::vector<std::string>& overrides) {
  auto spec = job::read_spec(file, overrides);
  if (!spec) return tl::unexpected(spec.error());
  return prepare_new_job(std::move(*spec));
}

} // namespace dlrun::runtime
