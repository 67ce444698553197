#include "runtime/host_data.hpp"

#include "actors/common/clock.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace dlrun::runtime {
namespace {

bool is_of_validation(data::array_place place) {
  return place == data::array_place::validation_records || place == data::array_place::validation_targets;
}

bool is_of_targets(data::array_place place) {
  return place == data::array_place::training_targets || place == data::array_place::validation_targets;
}

std::string file_of(const spec::DataSpec& spec, data::array_place place) {
  const auto& part = is_of_validation(place) ? spec.validation() : spec.train();
  return is_of_targets(place) && !part.labels().empty() ? part.labels() : part.records();
}

std::vector<std::uint64_t> all_blocks(const records::ArrayDigest& recorded) {
  std::vector<std::uint64_t> all(recorded.blocks().size() / data::block_digest_bytes);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

/// @param own the part that it is of, as it was decoded here
array_here compare(data::array_place place, const records::ArrayDigest& recorded, std::string name,
                   const result<const data::decoded_data*>& own) {
  array_here here{.place = place, .recorded = &recorded, .name = std::move(name)};
  here.missing = all_blocks(recorded);
  if (!own) {
    here.why = own.error().message;
    return here;
  }
  const auto* const part = *own;
  const auto* const array = part == nullptr             ? nullptr
                            : !is_of_targets(place)     ? &part->records
                            : part->targets.has_value() ? &*part->targets
                                                        : nullptr;
  if (array == nullptr) {
    here.why = fmt::format("{} ('{}') are not there", recorded.what(), here.name);
    return here;
  }
  if (const auto how = data::tell_difference(recorded, *array); !how.empty())
    here.why = fmt::format("{} ('{}'): {}", recorded.what(), here.name, how);
  if (auto differ = data::blocks_that_differ(recorded, *array)) {
    here.own = *array;
    here.missing = std::move(*differ);
  }
  return here;
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

result<data::decoded_data> part_of(const spec::DatasetSpec& spec, const data::stored_array* records,
                                   const data::stored_array* targets) {
  if (records == nullptr) return fail(error_code::protocol, "there are no records among the data");
  data::decoded_data made;
  made.records = *records;
  if (targets != nullptr) made.targets = *targets;
  made.kind = job::target_kind_of(spec);
  return data::check_decoded(std::move(made));
}

/// As an event and a message have room for it.
std::string shortened(std::string text) {
  if (text.size() > protocol::intake_text_bytes_max) text.resize(protocol::intake_text_bytes_max);
  return text;
}

std::string tell_given(const given_bytes& given) {
  std::vector<std::string> all;
  for (const auto& [host, bytes] : given)
    all.push_back(fmt::format("{:.1f} MB by host {}", megabytes(bytes), host));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// An array as it is here, or with the blocks that were missing.
using whole_arrays = std::vector<std::pair<data::array_place, data::stored_array>>;

/// Gets what is missing of `here`, which is let go on the way.
result<whole_arrays> complete(data_here here, const bootstrap::HostBundle& bundle,
                              const data_fetch_options& fetch, protocol::data_intake& intake) {
  auto memory = data::memory_budget_of(bundle.spec().data());
  whole_arrays whole;
  std::vector<array_intake> coming;
  for (auto& one : here.arrays) {
    if (one.missing.empty()) {
      whole.emplace_back(one.place, std::move(*one.own));
      continue;
    }
    auto begun = array_intake::begin(one, memory);
    if (!begun) return tl::unexpected(begun.error());
    one.own.reset();
    coming.push_back(std::move(*begun));
  }
  const auto start = common::now();
  const auto given = fetch_data(coming, fetch);
  if (!given) return tl::unexpected(given.error());
  intake.duration_us = common::to_us(common::now()) - common::to_us(start);
  for (const auto& [host, bytes] : *given) intake.bytes += bytes;
  intake.from = shortened(tell_given(*given));
  for (auto& one : coming) {
    const auto place = one.place();
    auto array = std::move(one).finish();
    if (!array) return tl::unexpected(array.error());
    whole.emplace_back(place, std::move(*array));
  }
  return whole;
}

error at_host(const bootstrap::HostBundle& bundle, const error& why) {
  return {why.code, fmt::format("host {}: {}", bundle.host(), why.message)};
}

} // namespace

std::uint64_t data_here::missing_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& one : arrays) {
    const auto size = data::recorded_bytes(*one.recorded).value_or(0);
    for (const auto block : one.missing) {
      const auto run = data::bytes_of_block(size, one.recorded->block_bytes(), block);
      bytes += run.end - run.first;
    }
  }
  return bytes;
}

std::string data_here::why() const {
  std::vector<std::string> all;
  for (const auto& one : arrays)
    if (!one.why.empty() && std::ranges::find(all, one.why) == all.end()) all.push_back(one.why);
  return fmt::format("{}", fmt::join(all, "; "));
}

result<data_here> look_at_data(const bootstrap::HostBundle& bundle) {
  auto spec = bundle.spec().data(); // as used: there is nothing left to learn
  const auto seed = bundle.spec().train().seed();
  auto memory = data::memory_budget_of(spec);
  const auto training = data::decode_training(spec, seed, target_kind::classes, memory);
  const auto validation = data::decode_validation(spec, seed, memory);
  const auto training_here = training ? result<const data::decoded_data*>{&*training}
                                      : result<const data::decoded_data*>{tl::unexpected(training.error())};
  const auto validation_here = validation
                                   ? result<const data::decoded_data*>{*validation ? &**validation : nullptr}
                                   : result<const data::decoded_data*>{tl::unexpected(validation.error())};
  data_here here;
  for (const auto& recorded : bundle.record().data()) {
    const auto place = data::place_of_array(recorded.what());
    if (!place)
      return fail(error_code::protocol, fmt::format("nobody knows '{}' among the data", recorded.what()));
    if (const auto bytes = data::recorded_bytes(recorded); !bytes) return tl::unexpected(bytes.error());
    here.arrays.push_back(compare(*place, recorded, file_of(spec, *place),
                                  is_of_validation(*place) ? validation_here : training_here));
  }
  return here;
}

result<data::job_data> assembled_data(const spec::DataSpec& spec, const whole_arrays& arrays) {
  const auto find = [&](data::array_place place) -> const data::stored_array* {
    const auto found = std::ranges::find(arrays, place, &whole_arrays::value_type::first);
    return found == arrays.end() ? nullptr : &found->second;
  };
  auto training = part_of(spec.train(), find(data::array_place::training_records),
                          find(data::array_place::training_targets));
  if (!training) return tl::unexpected(training.error());
  data::job_data data{std::move(*training), std::nullopt};
  if (find(data::array_place::validation_records) == nullptr) return data;
  auto validation = part_of(spec.validation(), find(data::array_place::validation_records),
                            find(data::array_place::validation_targets));
  if (!validation) return tl::unexpected(validation.error());
  data.validation = std::move(*validation);
  return data;
}

result<prepared_job> prepare_with(const spec::JobSpec& spec, const data_here& here) {
  whole_arrays arrays;
  for (const auto& one : here.arrays)
    if (one.own) arrays.emplace_back(one.place, *one.own);
  auto data = assembled_data(spec.data(), arrays);
  if (!data) return tl::unexpected(data.error());
  return prepare_job(spec, std::move(*data));
}

result<void> check_can_be_given(const bootstrap::HostBundle& bundle, const data_here& here) {
  if (job::data_share_of(bundle.spec().data()) == job::data_share::off)
    return fail(error_code::bad_data,
                fmt::format("the data is not that of host {}: {}; copy the file from there, or let "
                            "data.share be auto",
                            bundle.root(), here.why()));
  auto memory = data::memory_budget_of(bundle.spec().data());
  for (const auto& one : here.arrays)
    if (!one.missing.empty())
      if (const auto taken = memory.take(data::recorded_bytes(*one.recorded).value_or(0), one.name); !taken)
        return fail(
            error_code::bad_data,
            fmt::format("the data is not that of host {} ({}), and what is given lies in memory: {}; or "
                        "copy the file from there",
                        bundle.root(), here.why(), taken.error().message));
  return {};
}

result<host_job> prepare_on_host(const bootstrap::HostBundle& bundle, data_fetch_options fetch) {
  auto here = look_at_data(bundle);
  if (!here) return tl::unexpected(at_host(bundle, here.error()));
  if (here->missing_bytes() == 0) {
    auto job = prepare_with(bundle.spec(), *here);
    if (!job) return tl::unexpected(job.error());
    return host_job{std::move(*job)};
  }
  if (const auto fits = check_can_be_given(bundle, *here); !fits)
    return tl::unexpected(at_host(bundle, fits.error()));
  protocol::data_intake intake;
  intake.why = shortened(here->why());
  fetch.root = {bundle.root(), bundle.data_at()};
  fetch.turn = bundle.index();
  fetch.note(fmt::format("the data is not that of host {}: {}", bundle.root(), intake.why));
  auto arrays = complete(std::move(*here), bundle, fetch, intake);
  if (!arrays) return tl::unexpected(at_host(bundle, arrays.error()));
  auto data = assembled_data(bundle.spec().data(), *arrays);
  if (!data) return tl::unexpected(at_host(bundle, data.error()));
  auto job = prepare_job(bundle.spec(), std::move(*data));
  if (!job) return tl::unexpected(job.error());
  return host_job{std::move(*job), std::move(intake)};
}

} // namespace dlrun::runtime
