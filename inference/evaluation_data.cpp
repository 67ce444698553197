#include "inference/evaluation_data.hpp"

#include "data/equal_records.hpp"
#include "data/recorded_data.hpp"
#include "data/sampler.hpp"
#include "inference/model_data.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <vector>

namespace dlrun::inference {
namespace {

/// Do both name the same records?
bool same_files(const spec::DatasetSpec& one, const spec::DatasetSpec& other) {
  return one.format() == other.format() && one.records() == other.records() && one.labels() == other.labels();
}

std::vector<std::uint64_t> places_of(const data::dataset& part) {
  std::vector<std::uint64_t> places(part.record_count());
  for (std::uint64_t i = 0; i < places.size(); ++i) places[i] = part.number_in_files(i);
  return places;
}

/// Of `count` records in a sampler's order: those of the steps before `version`.
std::vector<bool> used_before(const spec::TrainSpec& train, std::uint64_t count,
                              std::optional<version_id> version) {
  const data::sampler order{data::sampler_options_from(train, count)};
  if (!version || version->value >= order.steps_per_epoch()) return std::vector<bool>(count, true);
  std::vector<bool> used(count);
  std::vector<std::uint64_t> records;
  for (step_id step{0}; version_after(step) <= *version; ++step.value)
    for (slot_id slot{0}; slot.value < order.slots(step); ++slot.value) {
      order.records(step, slot, records);
      for (const auto record : records) used[record] = true;
    }
  return used;
}

/// The data that `model.spec` names.
struct evaluated_files {
  spec::DataSpec spec;              ///< with what was learnt
  data::job_data decoded;           ///< `training` is empty where it cannot be read
  std::string why_no_training = ""; ///< "" where it was read
};

/// A split has its records from the training data, and what is not known yet is learnt from it.
/// Else it is not needed to evaluate.
bool needs_training_data(const loaded_model& model) {
  const auto& data = model.spec.data();
  return data.validation().has_split() || !(model.version || data::has_what_is_learnt(data.train()));
}

result<evaluated_files> decode_files(const loaded_model& model) {
  evaluated_files made{.spec = model.spec.data(), .decoded = {}};
  const auto seed = model.spec.train().seed();
  auto memory = data::memory_budget_of(made.spec);
  auto training = data::decode_training(made.spec, seed, targets_of(*model.model).kind, memory);
  if (training) {
    made.decoded.training = std::move(*training);
  } else {
    if (training.error().code != error_code::bad_data || needs_training_data(model))
      return tl::unexpected(training.error());
    made.why_no_training = training.error().message;
    memory = data::memory_budget_of(made.spec);
  }
  auto validation = data::decode_validation(made.spec, seed, memory);
  if (!validation) return tl::unexpected(validation.error());
  made.decoded.validation = std::move(*validation);
  return made;
}

/// What the model was trained on, as far as its files still have it.
struct training_files {
  std::optional<data::job_data> decoded; ///< nothing where it cannot be had
  bool are_evaluated = false;            ///< they are those of `model.spec`'s data.train
  bool were_changed = false;             ///< they are not what the run recorded
  std::string why_not = "";              ///< of `decoded`
};

training_files changed_files(const loaded_model& model, const std::string& changes) {
  const auto& decoders = model.recorded.other_decoders;
  return {.decoded = std::nullopt,
          .were_changed = true,
          .why_not = fmt::format(
              "data.train is not what the run was trained on: {}{}", changes,
              decoders.empty() ? "" : fmt::format(" (decoded with other libraries: {})", decoders))};
}

/// Files under other names are the run's, when they hold what it recorded.
training_files find_training_files(const loaded_model& model, const evaluated_files& files) {
  const auto& recorded = model.recorded.arrays;
  const bool is_same = same_files(model.trained.data().train(), model.spec.data().train());
  if (!files.why_no_training.empty()) {
    if (is_same) return {.decoded = std::nullopt, .why_not = files.why_no_training};
  } else if (is_same || !recorded.empty()) {
    const data::job_data decoded{files.decoded.training, {}};
    const auto changes = data::tell_changes(recorded, decoded, data::data_part::training);
    if (changes.empty()) return {.decoded = decoded, .are_evaluated = true};
    if (is_same) return changed_files(model, changes);
  }
  auto own = model.trained.data();
  own.clear_validation(); // learnt from all of it, where it was not learnt yet: the same records all
                          // the same
  auto opened = data::decode_job_data(own, model.trained.train().seed(), targets_of(*model.model).kind);
  if (!opened) return {.decoded = std::nullopt, .why_not = opened.error().message};
  const auto changes = data::tell_changes(recorded, *opened, data::data_part::training);
  if (!changes.empty()) return changed_files(model, changes);
  return {.decoded = std::move(*opened)};
}

/// Those of `files` that were trained on.
result<data::chosen_records> trained_records(const loaded_model& model, const data::job_data& files) {
  const auto part =
      data::open_part(files, model.trained.data(), model.trained.train().seed(), data::data_part::training);
  if (!part) return tl::unexpected(part.error());
  const auto used = used_before(model.trained.train(), (*part)->record_count(), model.version);
  data::chosen_records chosen{files.training, {}};
  for (std::uint64_t i = 0; i < used.size(); ++i)
    if (used[i]) chosen.places.push_back((*part)->number_in_files(i));
  return chosen;
}

std::uint64_t count_same_places(const data::chosen_records& evaluated, const data::chosen_records& trained) {
  std::vector<std::uint64_t> both;
  std::ranges::set_intersection(evaluated.places, trained.places, std::back_inserter(both));
  return both.size();
}

result<std::uint64_t> count_trained_on(const loaded_model& model, const evaluated_files& files,
                                       const training_files& training, const data::dataset& records) {
  if (!training.decoded) return fail(error_code::bad_data, training.why_not);
  auto trained = trained_records(model, *training.decoded);
  if (!trained) return tl::unexpected(trained.error());
  std::ranges::sort(trained->places);
  const auto& own = files.decoded.validation;
  const data::chosen_records evaluated{own ? *own : files.decoded.training, places_of(records)};
  if (!own && training.are_evaluated) return count_same_places(evaluated, *trained);
  return data::count_equal(evaluated, *trained);
}

/// What of the run's own validation data is not what the run evaluated, "" where nothing is, or
/// other data is evaluated.
std::string tell_changed_validation(const loaded_model& model, const evaluated_files& files,
                                    const training_files& training) {
  const auto& then = model.trained.data();
  const auto& now = model.spec.data();
  if (!files.decoded.validation) {
    const bool is_own = then.validation().has_split() &&
                        then.validation().split() == now.validation().split() &&
                        model.trained.train().seed() == model.spec.train().seed();
    return is_own && training.were_changed && same_files(then.train(), now.train())
               ? "they are split off from data.train, which is not what it was"
               : "";
  }
  if (!then.has_validation() || !same_files(then.validation(), now.validation())) return "";
  return data::tell_changes(model.recorded.arrays, files.decoded, data::data_part::validation);
}

} // namespace

result<evaluation_data> open_evaluation(const loaded_model& model) {
  if (!model.spec.data().has_validation())
    return fail(error_code::bad_usage, "the job has no data.validation: name some, with --set "
                                       "data.validation='{records: FILE, labels: FILE}'");
  const auto files = decode_files(model);
  if (!files) return tl::unexpected(files.error());
  auto opened =
      data::open_part(files->decoded, files->spec, model.spec.train().seed(), data::data_part::validation);
  if (!opened) return tl::unexpected(opened.error());
  if (auto fits = check_fits(**opened, *model.model); !fits) return tl::unexpected(fits.error());
  evaluation_data made{std::move(*opened)};
  const auto training = find_training_files(model, *files);
  made.changed = tell_changed_validation(model, *files, training);
  const auto trained_on = count_trained_on(model, *files, training, *made.records);
  if (trained_on)
    made.trained_on = *trained_on;
  else
    made.why_unknown = trained_on.error().message;
  return made;
}

} // namespace dlrun::inference
