#include "data/dataset.hpp"

#include "base/not_finite.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/detail/parallel_for.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

namespace dlrun::data {

namespace {

/// Read at once by a check of all records.
constexpr std::uint64_t read_values_max = std::uint64_t{1} << 16;
constexpr unsigned checking_threads_max = 8;

} // namespace

std::uint64_t dataset::record_values() const {
  const auto& shape = record_shape();
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{});
}

result<void> dataset::check_shape(std::span<const std::int64_t> input) const {
  const auto wanted = std::accumulate(input.begin(), input.end(), std::int64_t{1}, std::multiplies<>{});
  const auto& shape = record_shape();
  if (wanted < 0 || static_cast<std::uint64_t>(wanted) != record_values())
    return fail(
        error_code::bad_data,
        fmt::format("{}: a record has {} values ({}), but the model's input [{}] has {}; set model.input to "
                    "the shape of the records",
                    records_name(), record_values(), fmt::join(shape, " x "), fmt::join(input, ", "),
                    wanted));
  const bool same_dims =
      std::ranges::equal(shape, input, [](std::uint32_t a, std::int64_t b) { return a == b; });
  if (shape.size() != input.size() || same_dims) return {};
  return fail(
      error_code::bad_data,
      fmt::format("{}: a record is {}, but the model's input is [{}]: the same number of values in another "
                  "order; set model.input to the shape of the records (channels first)",
                  records_name(), fmt::join(shape, " x "), fmt::join(input, ", ")));
}

result<void> dataset::check_classes(std::int64_t outputs) const {
  if (outputs >= class_count()) return {};
  for (std::uint64_t i = 0; i < record_count(); ++i) {
    const auto label = class_of(i);
    if (!label) return tl::unexpected(label.error());
    if (*label >= outputs)
      return fail(
          error_code::bad_data,
          fmt::format("{}: record {} has label {}, but the model has only {} outputs; the data needs {}",
                      targets_name(), number_in_files(i), *label, outputs, class_count()));
  }
  return {};
}

result<void> dataset::check_fits(std::span<const std::int64_t> input, target_kind wanted,
                                 std::int64_t outputs) const {
  if (auto fits = check_shape(input); !fits || target_values() == 0) return fits;
  if (targets() != wanted)
    return fail(
        error_code::bad_data,
        fmt::format("{}: the targets are {}, but the loss takes {}; set targets to {} or choose another "
                    "loss",
                    targets_name(), targets() == target_kind::classes ? "class numbers" : "values",
                    wanted == target_kind::classes ? "class numbers" : "values",
                    wanted == target_kind::classes ? "classes" : "values"));
  if (wanted == target_kind::classes) return check_classes(outputs);
  if (target_values() == outputs) return {};
  return fail(error_code::bad_data,
              fmt::format("{}: the target of a record has {} values, but the model compares {}",
                          targets_name(), target_values(), outputs));
}

/// Calls `look` with all records, in pieces of a bounded number of values, by several threads.
/// @returns the first error, by the order of the records.
result<void> dataset::for_records(const record_check& look) const {
  const auto width = std::max<std::uint64_t>(1, record_values());
  const auto at_once = std::max<std::uint64_t>(1, read_values_max / width);
  const auto pieces = (record_count() + at_once - 1) / at_once;
  const auto targets_each = static_cast<std::uint64_t>(target_values());
  const auto threads = std::min<unsigned>(checking_threads_max, std::thread::hardware_concurrency());
  std::mutex guard;
  std::map<std::size_t, error> found; // what is behind an error is not looked at any more
  dlrun::detail::parallel_for(pieces, threads, [&] {
    return
        [&, indices = std::vector<std::uint64_t>(), values = std::vector<float>(),
         classes = std::vector<std::int32_t>(), numbers = std::vector<float>()](std::size_t piece) mutable {
          {
            const std::scoped_lock lock{guard};
            if (!found.empty() && found.begin()->first < piece) return;
          }
          const auto begin = piece * at_once;
          indices.resize(std::min(at_once, record_count() - begin));
          std::iota(indices.begin(), indices.end(), begin);
          values.resize(indices.size() * record_values());
          (targets() == target_kind::classes ? classes.resize(indices.size() * targets_each)
                                             : numbers.resize(indices.size() * targets_each));
          auto done = read(indices, values, {classes, numbers});
          if (done) done = look(indices, values);
          const std::scoped_lock lock{guard};
          if (!done) found.emplace(piece, done.error());
        };
  });
  if (found.empty()) return {};
  return tl::unexpected(found.begin()->second);
}

result<void> dataset::check_finite() const {
  if (!may_be_not_finite()) return {};
  return for_records([this](std::span<const std::uint64_t> indices, std::span<const float> values) {
    const auto wrong = base::find_not_finite(values);
    if (!wrong) return result<void>{};
    return result<void>{
        fail(error_code::bad_data,
             fmt::format("{}: record {} has {} at place {} (after normalize): records must be finite 32-bit "
                         "floats; correct or leave out the record",
                         records_name(), number_in_files(indices[wrong->place / record_values()]),
                         wrong->text, wrong->place % record_values()))};
  });
}

result<void> dataset::check_targets(const target_check& find_bad) const {
  const auto values = static_cast<std::uint64_t>(target_values());
  if (values == 0) return {};
  const auto at_once = std::max<std::uint64_t>(1, read_values_max / values);
  std::vector<std::uint64_t> indices;
  std::vector<std::int32_t> classes;
  std::vector<float> numbers;
  for (std::uint64_t begin = 0; begin < record_count(); begin += indices.size()) {
    indices.resize(std::min(at_once, record_count() - begin));
    std::iota(indices.begin(), indices.end(), begin);
    const auto count = indices.size() * values;
    (targets() == target_kind::classes ? classes.resize(count) : numbers.resize(count));
    if (auto got = read_targets(indices, {classes, numbers}); !got) return got;
    if (const auto bad = find_bad({{}, classes, numbers, static_cast<std::int64_t>(indices.size())}))
      return fail(error_code::bad_data, fmt::format("{}: record {} {}", targets_name(),
                                                    number_in_files(indices[bad->first]), bad->second));
  }
  return {};
}

result<void> dataset::check_rows(std::int64_t first, std::int64_t count, std::int64_t rows,
                                 std::string_view layer) const {
  const auto width = record_values();
  return for_records([&](std::span<const std::uint64_t> indices, std::span<const float> values) {
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (auto place = first; place < first + count; ++place) {
        const float value = values[i * width + static_cast<std::uint64_t>(place)];
        if (value >= 0.0F && value < static_cast<float>(rows) && std::floor(value) == value) continue;
        return result<void>{
            fail(error_code::bad_data,
                 fmt::format("{}: record {} has the value {} at place {}, but layer '{}' (embedding) takes "
                             "whole numbers from 0 to {}; correct the data or num_embeddings",
                             records_name(), number_in_files(indices[i]), value, place, layer, rows - 1))};
      }
    return result<void>{};
  });
}

} // namespace dlrun::data
