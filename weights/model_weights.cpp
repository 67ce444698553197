#include "weights/model_weights.hpp"

#include "base/not_finite.hpp"
#include "base/utf8.hpp"
#include "weights/safetensors_writer.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace dlrun::weights {
namespace {

constexpr std::size_t problems_max = 20;
/// Floats that are looked at a time.
constexpr std::size_t checked_at_once = std::size_t{1} << 18;
constexpr std::string_view mean_suffix = ".running_mean";
constexpr std::string_view counter_suffix = ".num_batches_tracked";

bool is_stored(const engine::tensor_info& tensor) { return tensor.kind != tensor_kind::metric; }

/// Name of PyTorch's counter of a layer with running statistics; "" for other tensors.
std::string counter_beside(const engine::tensor_info& tensor) {
  if (tensor.kind != tensor_kind::buffer || !tensor.name.ends_with(mean_suffix)) return "";
  return tensor.name.substr(0, tensor.name.size() - mean_suffix.size()) + std::string(counter_suffix);
}

/// What a whole file may hold.
std::set<std::string> known_names(const engine::parameter_layout& layout) {
  std::set<std::string> names;
  for (const auto& tensor : layout.tensors()) {
    if (is_stored(tensor)) names.insert(tensor.name);
    if (auto counter = counter_beside(tensor); !counter.empty()) names.insert(std::move(counter));
  }
  return names;
}

std::string shown(const std::vector<std::int64_t>& extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

std::vector<std::string> find_problems(const safetensors_file& file, const engine::parameter_layout& layout,
                                       fit wanted) {
  std::vector<std::string> problems;
  std::size_t taken = 0;
  for (const auto& tensor : layout.tensors()) {
    if (!is_stored(tensor)) continue;
    const auto* const found = file.find(tensor.name);
    if (found == nullptr) {
      if (wanted == fit::whole)
        problems.push_back(fmt::format("'{}' {} is not in the file", tensor.name, shown(tensor.extents)));
      continue;
    }
    ++taken;
    if (found->extents != tensor.extents)
      problems.push_back(fmt::format("'{}' is {} in the model, {} in the file", tensor.name,
                                     shown(tensor.extents), shown(found->extents)));
    else if (!is_float(found->dtype))
      problems.push_back(fmt::format("'{}' has the dtype {}, which is not one of F32, F64, F16, BF16",
                                     tensor.name, found->dtype));
  }
  if (wanted == fit::part && taken == 0) problems.emplace_back("it has no tensor of the model");
  if (wanted == fit::part) return problems;
  const auto known = known_names(layout);
  for (const auto& tensor : file.tensors())
    if (!known.contains(tensor.name))
      problems.push_back(
          fmt::format("'{}' {} is not in the model", base::printable(tensor.name), shown(tensor.extents)));
  return problems;
}

/// As they are written; without their bytes where `flat` and `counter` are empty.
std::vector<written_tensor> tensors_of(const engine::parameter_layout& layout, std::span<const float> flat,
                                       std::span<const std::int64_t> counter) {
  std::vector<written_tensor> tensors;
  for (const auto& tensor : layout.tensors()) // 8 bytes each: before the floats
    if (const auto name = counter_beside(tensor); !name.empty())
      tensors.push_back({name, "I64", {}, std::as_bytes(counter)});
  for (const auto& tensor : layout.tensors()) {
    const auto floats = flat.empty() ? flat : flat.subspan(tensor.offset, tensor.size);
    if (is_stored(tensor)) tensors.push_back({tensor.name, "F32", tensor.extents, std::as_bytes(floats)});
  }
  return tensors;
}

} // namespace

fit wanted_fit(const spec::TrainSpec& train) {
  return train.has_init_strict() && !train.init_strict() ? fit::part : fit::whole;
}

result<void> check_fits(const safetensors_file& file, const engine::parameter_layout& layout, fit wanted) {
  auto problems = find_problems(file, layout, wanted);
  if (problems.empty()) return {};
  const auto count = problems.size();
  if (count > problems_max) {
    problems.resize(problems_max);
    problems.push_back(fmt::format("and {} more", count - problems_max));
  }
  return fail(error_code::bad_data,
              fmt::format("{} does not fit the model: {}", file.name(), fmt::join(problems, "; ")));
}

result<void> read_part(const safetensors_file& file, const engine::parameter_layout& layout,
                       std::uint64_t offset, std::span<float> part) {
  const auto end = offset + part.size();
  for (const auto& tensor : layout.tensors()) {
    const auto begin = std::max(offset, tensor.offset);
    const auto stop = std::min(end, tensor.offset + tensor.size);
    if (!is_stored(tensor) || begin >= stop) continue;
    const auto* const found = file.find(tensor.name);
    if (found == nullptr) continue;
    DLRUN_CHECK(found->elements == tensor.size, "{} was not checked against the model", file.name());
    const auto into = part.subspan(begin - offset, stop - begin);
    if (auto got = file.read(*found, begin - tensor.offset, into); !got) return got;
  }
  return {};
}

result<void> check_finite(const safetensors_file& file, const engine::parameter_layout& layout) {
  std::vector<float> part;
  for (const auto& tensor : layout.tensors()) {
    const auto* const found = is_stored(tensor) ? file.find(tensor.name) : nullptr;
    if (found == nullptr) continue;
    for (std::uint64_t first = 0; first < found->elements; first += part.size()) {
      part.resize(std::min<std::uint64_t>(checked_at_once, found->elements - first));
      if (auto got = file.read(*found, first, part); !got) return got;
      const auto wrong = base::find_not_finite(part);
      if (!wrong) continue;
      return fail(error_code::bad_data,
                  fmt::format("{}: tensor '{}' has {} at {}: weights must be finite 32-bit floats",
                              file.name(), tensor.name, wrong->text,
                              to_string(element_index(tensor.extents, first + wrong->place))));
    }
  }
  return {};
}

result<void> check_writable(const engine::parameter_layout& layout) {
  auto fits = check_header(tensors_of(layout, {}, {}), {});
  if (fits) return {};
  return fail(error_code::bad_spec, fmt::format("the model could not be exported: {}", fits.error().message));
}

result<void> write_weights(const std::filesystem::path& file, const engine::parameter_layout& layout,
                           std::span<const float> flat, std::uint64_t updates,
                           const std::map<std::string, std::string>& metadata) {
  DLRUN_CHECK(flat.size() == layout.flat_size(), "{} floats for a layout of {}", flat.size(),
              layout.flat_size());
  const auto counter = static_cast<std::int64_t>(updates);
  return write_safetensors(file, tensors_of(layout, flat, {&counter, 1}), metadata);
}

} // namespace dlrun::weights
