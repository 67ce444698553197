#include "data/array_dataset.hpp"

#include "data/normalisation.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace dlrun::data {
namespace {

float zero_of(double mean, double std) {
  const std::uint8_t byte = 0;
  float zero = 0;
  normalise({&byte, 1}, element_type::u1, mean, std, {&zero, 1});
  return zero;
}

} // namespace

result<std::shared_ptr<const dataset>> array_dataset::create(decoded_data data,
                                                             const spec::NormalizeSpec& normalize) {
  auto made = std::shared_ptr<array_dataset>(new array_dataset);
  for (std::size_t i = 1; i < data.records.dims.size(); ++i) {
    if (data.records.dims[i] > std::numeric_limits<std::uint32_t>::max())
      return fail(error_code::bad_data, fmt::format("{}: records of shape {} are too large",
                                                    data.records.name, fmt::join(data.records.dims, " x ")));
    made->shape_.push_back(static_cast<std::uint32_t>(data.records.dims[i]));
  }
  const auto given = static_cast<std::size_t>(std::max({1, normalize.mean_size(), normalize.std_size()}));
  const std::size_t channels = made->shape_.empty() ? 1 : made->shape_.front();
  if (given != 1 && given != channels)
    return fail(
        error_code::bad_data,
        fmt::format("{}: normalize has {} values, but a record ({}) has {} channels; write one number for "
                    "all, or one a channel",
                    data.records.name, given, fmt::join(made->shape_, " x "), channels));
  const auto value = [](const auto& list, std::size_t i, double otherwise) {
    if (list.empty()) return otherwise;
    return list.Get(list.size() == 1 ? 0 : static_cast<int>(i));
  };
  for (std::size_t i = 0; i < given; ++i) {
    const double mean = value(normalize.mean(), i, 0);
    const double std = value(normalize.std(), i, 1);
    made->channels_.push_back({mean, std, zero_of(mean, std)});
  }
  made->data_ = std::move(data);
  return made;
}

std::int64_t array_dataset::target_values() const {
  return data_.targets ? static_cast<std::int64_t>(data_.targets->values_per_record()) : 0;
}

const std::string& array_dataset::targets_name() const {
  return data_.targets ? data_.targets->name : data_.records.name;
}

std::vector<float> array_dataset::zeroes() const {
  std::vector<float> all;
  for (const auto& c : channels_) all.push_back(c.zero);
  return all;
}

void array_dataset::read_record(std::uint64_t index, std::span<float> out) const {
  const auto bytes = data_.records.record(index);
  const auto type = data_.records.type;
  const std::size_t values = out.size() / channels_.size();
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const auto& channel = channels_[c];
    const auto from = bytes.subspan(c * values * size_of(type), values * size_of(type));
    normalise(from, type, channel.mean, channel.std, out.subspan(c * values, values));
  }
}

/// Records of a shuffled data set lie anywhere: each one begins with misses that the processor does
/// not see coming.
void array_dataset::expect_record(std::uint64_t index) const {
  constexpr std::size_t bytes_of_line = 64;
  constexpr std::size_t bytes_max = 4096; // behind that it has seen enough
  const auto bytes = data_.records.record(index);
  const auto wanted = bytes.first(std::min(bytes.size(), bytes_max));
  for (std::size_t at = 0; at < wanted.size(); at += bytes_of_line) __builtin_prefetch(wanted.data() + at);
}

void array_dataset::check_room(std::size_t records, const target_buffers& targets) const {
  const auto values = static_cast<std::size_t>(target_values());
  const bool classes = data_.targets && data_.kind == target_kind::classes;
  const bool floats = data_.targets && data_.kind == target_kind::values;
  DLRUN_CHECK(targets.classes.size() == (classes ? records : 0), "{} class numbers for {} records",
              targets.classes.size(), records);
  DLRUN_CHECK(targets.values.size() == (floats ? records * values : 0),
              "{} target values for {} records of {}", targets.values.size(), records, values);
}

result<void> array_dataset::read_target(std::uint64_t index, std::size_t to,
                                        const target_buffers& targets) const {
  if (!data_.targets) return {};
  if (data_.kind == target_kind::values) {
    const auto values = static_cast<std::size_t>(target_values());
    to_floats(data_.targets->record(index), data_.targets->type, targets.values.subspan(to * values, values));
    return {};
  }
  const auto number = data_.class_of(index);
  if (!number) return tl::unexpected(number.error());
  targets.classes[to] = *number;
  return {};
}

result<void> array_dataset::read_targets(std::span<const std::uint64_t> indices,
                                         const target_buffers& targets) const {
  check_room(indices.size(), targets);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    DLRUN_CHECK(indices[i] < record_count(), "record {} of {}", indices[i], record_count());
    if (auto done = read_target(indices[i], i, targets); !done) return done;
  }
  return {};
}

result<void> array_dataset::read(std::span<const std::uint64_t> indices, std::span<float> records,
                                 const target_buffers& targets) const {
  const auto values = static_cast<std::size_t>(record_values());
  DLRUN_CHECK(records.size() == indices.size() * values, "{} floats for {} records of {} values",
              records.size(), indices.size(), values);
  check_room(indices.size(), targets);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    DLRUN_CHECK(indices[i] < record_count(), "record {} of {}", indices[i], record_count());
    constexpr std::size_t ahead = 4;
    if (i + ahead < indices.size() && indices[i + ahead] < record_count()) expect_record(indices[i + ahead]);
    read_record(indices[i], records.subspan(i * values, values));
    if (auto done = read_target(indices[i], i, targets); !done) return done;
  }
  return {};
}

} // namespace dlrun::data
