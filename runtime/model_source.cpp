#include "runtime/model_source.hpp"

#include "actors/common/job_context.hpp"
#include "actors/ps_shard/stored_run.hpp"
#include "base/sha256.hpp"
#include "job/spec_reader.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/run_folder.hpp"
#include "weights/initial_weights.hpp"
#include "weights/model_weights.hpp"
#include <dlrun/report.hpp>

#include <filesystem>
#include <spdlog/sinks/stdout_sinks.h>

namespace dlrun::runtime {
namespace {

/// What is to be known of a run before its stores are opened.
struct past_job {
  std::filesystem::path folder;
  spec::JobSpec spec;
  std::vector<spec::TrainSpec> revisions; ///< what each says of updates
};

result<past_job> read_job(const run_folder& folder, const std::vector<std::string>& overrides) {
  const auto files = folder.spec_files();
  auto newest = job::read_spec(files.back(), overrides);
  if (!newest) return tl::unexpected(newest.error());
  past_job job{folder.path(), std::move(*newest), {}};
  for (const auto& file : files) {
    const auto spec = job::read_spec(file);
    if (!spec) return tl::unexpected(spec.error());
    job.revisions.push_back(common::update_part(spec->train()));
  }
  return job;
}

/// `records` of the training data; a made-up number where no step is made again.
result<std::shared_ptr<const common::job_context>> context_of(const past_job& job, std::uint64_t records) {
  return common::make_job_context(
      {.spec = job.spec, .revisions = job.revisions, .train_records = records, .run_dir = job.folder});
}

result<ps_shard::stored_run> open_stores(const past_job& job) {
  if (job.spec.durability().log() == "off")
    return fail(error_code::bad_usage,
                fmt::format("the run in '{}' kept nothing on disk (durability.log is off): train with "
                            "durability.log: snapshots, or every_step, to get at its model",
                            job.folder.string()));
  auto stores =
      ps_shard::stored_run::open(job.folder, static_cast<std::uint32_t>(job.spec.cluster().ps_shards()));
  if (!stores && stores.error().code == error_code::bad_usage)
    return fail(error_code::bad_usage, fmt::format("the run in '{}' has nothing on disk yet: {}",
                                                   job.folder.string(), stores.error().message));
  if (!stores && stores.error().code == error_code::in_use) // processes of a root that was killed just now
    return fail(error_code::bad_usage, fmt::format("the run folder '{}' is in use: {}", job.folder.string(),
                                                   stores.error().message));
  return stores;
}

/// The step that is asked for, if one is.
result<std::optional<std::uint64_t>> wanted_step(const model_choice& choice, const past_job& job) {
  if (!choice.best) return choice.step;
  const auto report = dlrun::read_report(job.folder / "report.json");
  if (!report)
    return fail(error_code::bad_usage,
                fmt::format("which version is the best stands in the report of a run that has ended: {}",
                            report.error().message));
  if (report->best) return report->best->step;
  return fail(
      error_code::bad_usage,
      fmt::format("the run in '{}' kept no best version: train with train.keep_best, or choose one of "
                  "its versions with --step",
                  job.folder.string()));
}

result<version_id> choose_version(const ps_shard::stored_run& stores, std::optional<std::uint64_t> step,
                                  const past_job& job) {
  const auto& versions = stores.versions();
  if (!step) return versions.back().last;
  if (protocol::contains(versions, {*step})) return version_id{*step};
  return fail(error_code::bad_usage, fmt::format("the run in '{}' does not have step {} on disk; it has {}",
                                                 job.folder.string(), *step, protocol::to_string(versions)));
}

/// How many records the job trains on: those that are not split off.
result<std::uint64_t> training_records(const past_job& job) {
  const auto model = engine::model::build(job.spec.model());
  if (!model) return tl::unexpected(model.error());
  auto spec = job.spec.data();
  const auto seed = job.spec.train().seed();
  const auto decoded = data::decode_job_data(spec, seed, targets_of(**model).kind);
  if (!decoded) return tl::unexpected(decoded.error());
  const auto data = data::open_part(*decoded, spec, seed, data::data_part::training);
  if (!data) return tl::unexpected(data.error());
  return (*data)->record_count();
}

/// What makes the version of the log: it needs to know how many records there are.
result<ps_shard::stored_version> replay(const past_job& job, const ps_shard::stored_run& stores,
                                        version_id version) {
  const auto records = training_records(job);
  if (!records)
    return fail(
        records.error().code,
        fmt::format("step {} is on disk as a log of steps, and to make it of that the training data is "
                    "needed: {}",
                    version, records.error().message));
  const auto context = context_of(job, *records);
  if (!context) return tl::unexpected(context.error());
  spdlog::logger log{"dlrun", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  log.set_pattern("dlrun: %v");
  log.set_level(spdlog::level::warn);
  return stores.load(*context, version, log);
}

/// What makes version 0 must be the file of the start. One that is gone is missed where it is needed.
result<void> check_initial_weights(const past_job& job, const engine::model& model) {
  const auto& train = job.spec.train();
  std::error_code why;
  if (!train.has_init_from() || !std::filesystem::exists(train.init_from(), why)) return {};
  const auto same = weights::open_initial_weights(train, model.layout());
  return same ? result<void>{} : tl::unexpected(same.error());
}

/// `context` is without the right number of records. What is damaged and not needed is added to `damaged`.
result<ps_shard::stored_version> load_version(const past_job& job,
                                              const std::shared_ptr<const common::job_context>& context,
                                              const ps_shard::stored_run& stores, version_id version,
                                              std::vector<std::string>& damaged) {
  if (version.value == 0 || !stores.is_whole(version))
    if (auto same = check_initial_weights(job, *context->model); !same) return tl::unexpected(same.error());
  if (!stores.is_whole(version)) return replay(job, stores, version);
  auto loaded = stores.load_whole(context, version);
  if (loaded || loaded.error().code != error_code::storage_damaged) return loaded;
  damaged.push_back(loaded.error().message);
  auto made = replay(job, stores, version); // the log may lead there too
  return made ? made : loaded;
}

result<given_model> load_run(const model_choice& choice) {
  const auto folder = run_folder::open_to_read(choice.path);
  if (!folder) return tl::unexpected(folder.error());
  auto job = read_job(*folder, choice.overrides);
  if (!job) return tl::unexpected(job.error());
  const auto stores = open_stores(*job);
  if (!stores) return tl::unexpected(stores.error());
  const auto step = wanted_step(choice, *job);
  if (!step) return tl::unexpected(step.error());
  const auto version = choose_version(*stores, *step, *job);
  if (!version) return tl::unexpected(version.error());
  const auto context = context_of(*job, 1);
  if (!context) return tl::unexpected(context.error());
  auto damaged = stores->damaged();
  auto loaded = load_version(*job, *context, *stores, *version, damaged);
  if (!loaded) return tl::unexpected(loaded.error());
  return given_model{std::move(job->spec),
                     (*context)->model,
                     std::move(loaded->parameters),
                     *version,
                     base::sha256_hex(loaded->block_digests),
                     std::move(damaged)};
}

result<given_model> load_file(const model_choice& choice) {
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
  std::vector<float> parameters(layout.flat_size());
  if (auto got = weights::read_part(*file, layout, 0, parameters); !got) return tl::unexpected(got.error());
  return given_model{std::move(*spec), *model, std::move(parameters)};
}

} // namespace

result<given_model> load_model(const model_choice& choice) {
  std::error_code why;
  const auto found = std::filesystem::status(choice.path, why);
  if (!std::filesystem::exists(found))
    return fail(error_code::bad_usage,
                fmt::format("'{}' is neither the folder of a run nor a weights file: {}", choice.path,
                            why.message()));
  if (!std::filesystem::is_directory(found)) return load_file(choice);
  if (choice.spec_file.empty()) return load_run(choice);
  return fail(error_code::bad_usage,
              fmt::format("--spec is for a weights file: the run in '{}' has its own", choice.path));
}

} // namespace dlrun::runtime
