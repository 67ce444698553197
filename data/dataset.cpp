#include "data/dataset.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace dlrun::data {

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

} // namespace dlrun::data
