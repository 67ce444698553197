#include "inference/evaluation_data.hpp"

#include "data/equal_records.hpp"
#include "data/sampler.hpp"
#include "inference/model_data.hpp"

#include <algorithm>
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

/// `decoded` has the data that `model.spec` names, and with it mostly that of the training.
result<data::chosen_records> trained_records(const loaded_model& model, const data::job_data& decoded) {
  auto spec = model.trained.data();
  const auto seed = model.trained.train().seed();
  data::job_data then{decoded.training, {}};
  if (!same_files(spec.train(), model.spec.data().train())) {
    auto own = spec;
    own.clear_validation(); // learnt from all of it, where it was not learnt yet: the same records all the
                            // same
    auto opened = data::decode_job_data(own, seed, targets_of(*model.model).kind);
    if (!opened) return tl::unexpected(opened.error());
    then = std::move(*opened);
  }
  const auto part = data::open_part(then, spec, seed, data::data_part::training);
  if (!part) return tl::unexpected(part.error());
  const auto used = used_before(model.trained.train(), (*part)->record_count(), model.version);
  data::chosen_records chosen{then.training, {}};
  for (std::uint64_t i = 0; i < used.size(); ++i)
    if (used[i]) chosen.places.push_back((*part)->number_in_files(i));
  return chosen;
}

std::uint64_t count_same_places(const data::chosen_records& evaluated, const data::chosen_records& trained) {
  std::vector<std::uint64_t> both;
  std::ranges::set_intersection(evaluated.places, trained.places, std::back_inserter(both));
  return both.size();
}

result<std::uint64_t> count_trained_on(const loaded_model& model, const data::job_data& decoded,
                                       const data::dataset& records) {
  auto trained = trained_records(model, decoded);
  if (!trained) return tl::unexpected(trained.error());
  std::ranges::sort(trained->places);
  data::chosen_records evaluated{decoded.validation ? *decoded.validation : decoded.training,
                                 places_of(records)};
  if (!decoded.validation && same_files(model.trained.data().train(), model.spec.data().train()))
    return count_same_places(evaluated, *trained);
  return data::count_equal(evaluated, *trained);
}

} // namespace

result<evaluation_data> open_evaluation(const loaded_model& model) {
  auto spec = model.spec.data();
  if (!spec.has_validation())
    return fail(error_code::bad_usage, "the job has no data.validation: name some, with --set "
                                       "data.validation='{records: FILE, labels: FILE}'");
  const auto seed = model.spec.train().seed();
  const auto decoded = data::decode_job_data(spec, seed, targets_of(*model.model).kind);
  if (!decoded) return tl::unexpected(decoded.error());
  auto opened = data::open_part(*decoded, spec, seed, data::data_part::validation);
  if (!opened) return tl::unexpected(opened.error());
  if (auto fits = check_fits(**opened, *model.model); !fits) return tl::unexpected(fits.error());
  evaluation_data made{std::move(*opened)};
  const auto trained_on = count_trained_on(model, *decoded, *made.records);
  if (trained_on)
    made.trained_on = *trained_on;
  else
    made.why_unknown = trained_on.error().message;
  return made;
}

} // namespace dlrun::inference
