#include "inference/model_source.hpp"

#include "base/sha256.hpp"
#include "data/job_data.hpp"
#include "inference/model_data.hpp"
#include "inference/run_stores.hpp"
#include "job/choices.hpp"
#include "job/data_reading.hpp"
#include "job/run_layout.hpp"
#include "job/spec_reader.hpp"
#include "weights/model_weights.hpp"
#include <dlrun/report.hpp>

#include <algorithm>

namespace dlrun::inference {
namespace {

/// A run as its specifications tell it, before its stores are opened.
struct past_run {
  std::filesystem::path folder;
  spec::JobSpec spec; ///< the newest revision
  training_recipe recipe;
  std::optional<std::uint64_t> train_records{};
};

result<past_run> read_run(const run_source& run) {
  past_run past{run.folder, run.as_written, {}, run.train_records};
  for (const auto& spec : run.revisions) past.recipe.revisions.push_back(spec.train());
  auto model = engine::model::build(past.spec.model());
  if (!model) return tl::unexpected(model.error());
  past.recipe.model = std::move(*model);
  return past;
}

result<run_stores> open_stores(const past_run& run) {
  if (job::durability_log_of(run.spec) == job::durability_log::off)
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' kept nothing on disk (durability.log is off): train with "
                            "durability.log: snapshots, or every_step, to get at its model",
                            run.folder.string()));
  auto stores = run_stores::open(run.folder, static_cast<std::uint32_t>(run.spec.cluster().ps_shards()));
  if (!stores && stores.error().code == error_code::bad_usage)
    return fail(error_code::bad_usage, fmt::format("the run in '{}' has nothing on disk yet: {}",
                                                   run.folder.string(), stores.error().message));
  if (!stores && stores.error().code == error_code::in_use) // processes of a root that was killed just now
    return fail(error_code::bad_usage, fmt::format("the run folder '{}' is in use: {}", run.folder.string(),
                                                   stores.error().message));
  return stores;
}

/// The step that is asked for, if one is.
result<std::optional<std::uint64_t>> wanted_step(const model_choice& choice, const past_run& run) {
  if (!choice.best) return choice.step;
  const auto report = dlrun::read_report(run.folder / run_layout::report);
  if (!report)
    return fail(error_code::bad_usage,
                fmt::format("which version is the best stands in the report of a run that has ended: {}",
                            report.error().message));
  if (report->best) return report->best->step;
  if (run.spec.train().has_keep_best())
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' has no best version: no evaluation of it gave a finite {}; "
                            "choose one of its versions with --step",
                            run.folder.string(), run.spec.train().keep_best().metric()));
  return fail(
      error_code::bad_usage,
      fmt::format("the run in '{}' kept no best version: train with train.keep_best, or choose one of "
                  "its versions with --step",
                  run.folder.string()));
}

result<version_id> choose_version(const run_stores& stores, std::optional<std::uint64_t> step,
                                  const past_run& run) {
  const auto& versions = stores.versions();
  if (!step) return versions.back().last;
  if (protocol::contains(versions, {*step})) return version_id{*step};
  return fail(error_code::bad_usage, fmt::format("the run in '{}' does not have step {} on disk; it has {}",
                                                 run.folder.string(), *step, protocol::to_string(versions)));
}

/// Which records were in which step. Where the run did not write down how many there are, the
/// training data is opened for that.
result<data::sampler> training_order(const past_run& run, version_id version) {
  const auto records = run.train_records ? result<std::uint64_t>{*run.train_records}
                                         : training_records(run.spec, *run.recipe.model);
  if (records) return data::sampler{data::sampler_options_from(run.spec.train(), *records)};
  return fail(records.error().code,
              fmt::format("step {} is on disk as a log of steps, and to make it of that the training data is "
                          "needed: {}",
                          version, records.error().message));
}

/// What is damaged and not needed is added to `damaged`.
result<rebuilt_version> load_version(past_run& run, const run_stores& stores, version_id version,
                                     std::vector<std::string>& damaged) {
  if (stores.is_whole(version)) {
    auto loaded = stores.load(run.recipe, version, damaged);
    if (loaded || loaded.error().code != error_code::storage_damaged) return loaded;
  }
  auto order = training_order(run, version); // the log may lead there too
  if (!order) return tl::unexpected(order.error());
  run.recipe.sampler = std::move(*order);
  return stores.load(run.recipe, version, damaged);
}

/// `parameters` of `trained` as `wanted` has them: the two may differ in what has no tensors.
result<std::vector<float>> parameters_for(const engine::model& wanted, const engine::model& trained,
                                          std::vector<float> parameters) {
  const auto& now = wanted.layout().tensors();
  const auto& then = trained.layout().tensors();
  const auto count = std::max(now.size(), then.size()) - 1; // the last one is the metrics
  for (std::size_t i = 0; i < count; ++i) {
    const bool both = i + 1 < now.size() && i + 1 < then.size();
    if (both && now[i].name == then[i].name && now[i].extents == then[i].extents &&
        now[i].kind == then[i].kind && now[i].offset == then[i].offset)
      continue;
    const auto& differs = i + 1 < then.size() ? then[i] : now[i];
    return fail(error_code::bad_usage,
                fmt::format("with these --set it is another model than the run has trained: '{}' is not the "
                            "same; what may be changed has no parameters: metrics, loss, data",
                            differs.name));
  }
  parameters.resize(trained.layout().metrics().offset);
  parameters.resize(wanted.layout().flat_size(), 0.0F);
  return parameters;
}

/// Whatever is overridden, a record becomes the numbers that the parameters were trained on.
result<void> keep_reading(const spec::DatasetSpec& trained, spec::DatasetSpec& train) {
  job::take_learnt(trained, train);
  const auto differences = job::reading_differences(trained, train, job::taught::yes);
  if (differences.empty()) return {};
  const auto& first = differences.front();
  return fail(error_code::bad_usage,
              fmt::format("with these --set records are read otherwise than the run read what it was trained "
                          "on: data.train.{} was {}, and is {}; leave it as it was",
                          first.key, first.trained, first.here));
}

} // namespace

result<loaded_model> load_run(const run_source& source, const model_choice& choice) {
  auto run = read_run(source);
  if (!run) return tl::unexpected(run.error());
  loaded_model made;
  auto spec =
      job::complete_spec(source.as_written, source.spec_file.string(), source.folder, choice.overrides);
  if (!spec) return tl::unexpected(spec.error());
  if (auto same = keep_reading(run->spec.data().train(), *spec->mutable_data()->mutable_train()); !same)
    return tl::unexpected(same.error());
  auto model = engine::model::build(spec->model());
  if (!model) return tl::unexpected(model.error());
  const auto stores = open_stores(*run);
  if (!stores) return tl::unexpected(stores.error());
  const auto step = wanted_step(choice, *run);
  if (!step) return tl::unexpected(step.error());
  const auto version = choose_version(*stores, *step, *run);
  if (!version) return tl::unexpected(version.error());
  made.damaged = stores->damaged();
  auto loaded = load_version(*run, *stores, *version, made.damaged);
  if (!loaded) return tl::unexpected(loaded.error());
  auto parameters = parameters_for(**model, *run->recipe.model, std::move(loaded->parameters));
  if (!parameters) return tl::unexpected(parameters.error());
  made.spec = std::move(*spec);
  made.trained = std::move(run->spec);
  made.model = std::move(*model);
  made.parameters = std::move(*parameters);
  made.version = *version;
  made.recorded = source.recorded;
  made.parameters_sha256 = base::sha256_hex(loaded->block_digests);
  return made;
}

result<loaded_model> load_weights_file(const model_choice& choice) {
  if (choice.spec_file.empty())
    return fail(error_code::bad_usage,
                fmt::format("'{}' is a weights file: say which model it is of, with --spec "
                            "JOB.yaml",
                            choice.path));
  if (choice.step || choice.best)
    return fail(error_code::bad_usage,
                "--step and --best are for the folder of a run: a weights file has one version");
  auto spec = job::read_spec(choice.spec_file, choice.overrides);
  if (!spec) return tl::unexpected(spec.error());
  const auto model = engine::model::build(spec->model());
  if (!model) return tl::unexpected(model.error());
  const auto file = weights::safetensors_file::open(choice.path);
  if (!file) return tl::unexpected(file.error());
  const auto& layout = (*model)->layout();
  if (auto fits = weights::check_fits(*file, layout, weights::fit::whole); !fits)
    return tl::unexpected(fits.error());
  if (auto finite = weights::check_finite(*file, layout); !finite) return tl::unexpected(finite.error());
  std::vector<float> parameters(layout.flat_size());
  if (auto got = weights::read_part(*file, layout, 0, parameters); !got) return tl::unexpected(got.error());
  loaded_model made{std::move(*spec), {}, *model, std::move(parameters)};
  auto trained = job::read_spec(choice.spec_file); // a job file may need its --set to be whole
  made.trained = trained ? std::move(*trained) : made.spec;
  return made;
}

} // namespace dlrun::inference
