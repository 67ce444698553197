#include "data/decoded.hpp"

#include "data/normalisation.hpp"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace dlrun::data {
namespace {

// Larger than any array this is used for, small enough that sums of sizes never overflow.
constexpr std::uint64_t values_max = std::uint64_t{1} << 46;
constexpr std::int64_t class_max = std::numeric_limits<std::int32_t>::max() - 1;

template <class Value>
Value load(std::span<const std::uint8_t> bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::int64_t whole_number(std::span<const std::uint8_t> bytes, element_type type) {
  switch (type) {
  case element_type::i4: return load<std::int32_t>(bytes);
  case element_type::i8: return load<std::int64_t>(bytes);
  default: return bytes[0];
  }
}

result<void> check_extent(const stored_array& array) {
  const auto values = count_values(array.dims, array.name);
  if (!values) return tl::unexpected(values.error());
  const std::uint64_t bytes = *values * size_of(array.type);
  const std::uint64_t there = array.memory->bytes().size();
  if (array.offset <= there && bytes <= there - array.offset) return {};
  return fail(error_code::bad_data,
              fmt::format("{}: {} values ({}) from byte {} do not fit into its {} bytes", array.name, *values,
                          fmt::join(array.dims, " x "), array.offset, there));
}

result<void> check_classes(decoded_data& data) {
  const auto& targets = *data.targets;
  if (is_float(targets.type))
    return fail(
        error_code::bad_data,
        fmt::format("{}: targets are {}, but the loss takes class numbers: they must be whole (u1, i4, "
                    "i8); or choose a loss that takes values, such as mse",
                    targets.name, to_string(targets.type)));
  if (targets.values_per_record() != 1)
    return fail(
        error_code::bad_data,
        fmt::format("{}: {} class numbers for each record ({}), but a record has one class; are records "
                    "and labels swapped?",
                    targets.name, targets.values_per_record(), fmt::join(targets.dims, " x ")));
  std::int64_t largest = 0;
  for (std::uint64_t i = 0; i < targets.records(); ++i) {
    const std::int64_t number = whole_number(targets.record(i), targets.type);
    if (number < 0 || number > class_max)
      return fail(error_code::bad_data,
                  fmt::format("{}: record {} has label {}; classes are numbers from 0 to {}", targets.name, i,
                              number, class_max));
    largest = std::max(largest, number);
  }
  data.class_count = static_cast<std::uint32_t>(largest) + 1;
  return {};
}

result<void> check_values(const stored_array& targets) {
  std::vector<float> values(static_cast<std::size_t>(targets.values_per_record()));
  for (std::uint64_t i = 0; i < targets.records(); ++i) {
    to_floats(targets.record(i), targets.type, values);
    for (const float value : values)
      if (!std::isfinite(value))
        return fail(error_code::bad_data,
                    fmt::format("{}: the target of record {} is {}; targets must be finite 32-bit floats",
                                targets.name, i, value));
  }
  return {};
}

} // namespace

std::uint64_t stored_array::values_per_record() const {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) product *= dims[i];
  return product;
}

result<std::int32_t> decoded_data::class_of(std::uint64_t index) const {
  const std::int64_t number = whole_number(targets->record(index), targets->type);
  if (number < 0 || number >= class_count)
    return fail(
        error_code::bad_data,
        fmt::format("{}: record {} has label {}, which it had not when the job was started: the file was "
                    "changed",
                    targets->name, index, number));
  return static_cast<std::int32_t>(number);
}

result<std::uint64_t> count_values(std::span<const std::uint64_t> dims, const std::string& name) {
  std::uint64_t values = 1;
  for (const auto size : dims) {
    if (size == 0)
      return fail(error_code::bad_data,
                  fmt::format("{}: there is nothing in it: its shape is {}", name, fmt::join(dims, " x ")));
    if (__builtin_mul_overflow(values, size, &values) || values > values_max)
      return fail(error_code::bad_data,
                  fmt::format("{}: its shape {} is more than 2^46 values", name, fmt::join(dims, " x ")));
  }
  return values;
}

result<decoded_data> check_decoded(decoded_data data) {
  if (data.records.dims.empty())
    return fail(error_code::bad_data,
                fmt::format("{}: a single number is no set of records", data.records.name));
  if (auto fits = check_extent(data.records); !fits) return tl::unexpected(fits.error());
  if (!data.targets) return data;
  const auto& targets = *data.targets;
  if (targets.dims.empty())
    return fail(error_code::bad_data, fmt::format("{}: a single number is no list of labels", targets.name));
  if (auto fits = check_extent(targets); !fits) return tl::unexpected(fits.error());
  if (targets.records() != data.records.records())
    return fail(error_code::bad_data,
                fmt::format("{} has {} records, but {} has {} labels", data.records.name,
                            data.records.records(), targets.name, targets.records()));
  const auto fine = data.kind == target_kind::classes ? check_classes(data) : check_values(targets);
  if (!fine) return tl::unexpected(fine.error());
  return data;
}

} // namespace dlrun::data
