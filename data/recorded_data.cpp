#include "data/recorded_data.hpp"

#include "data/block_digests.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::data {
namespace {

constexpr std::array<const char*, 4> array_names{"the records of data.train", "the targets of data.train",
                                                 "the records of data.validation",
                                                 "the targets of data.validation"};

bool has_shape(const records::ArrayDigest& recorded, const stored_array& now) {
  return std::ranges::equal(recorded.dims(), now.dims) &&
         recorded.type() == static_cast<std::uint32_t>(now.type) && recorded_bytes(recorded).has_value();
}

std::uint64_t record_bytes_of(const records::ArrayDigest& recorded) {
  std::uint64_t bytes = size_of(static_cast<element_type>(recorded.type()));
  for (int i = 1; i < recorded.dims_size(); ++i) bytes *= recorded.dims(i);
  return bytes;
}

data_part data_part_of(array_place place) {
  const bool is_validation =
      place == array_place::validation_records || place == array_place::validation_targets;
  return is_validation ? data_part::validation : data_part::training;
}

std::uint64_t blocks_of(const records::ArrayDigest& recorded) {
  return recorded.blocks().size() / block_digest_bytes;
}

} // namespace

std::string what_of(array_place place) { return array_names[static_cast<std::size_t>(place)]; }

std::optional<array_place> place_of_array(const std::string& what) {
  const auto found = std::ranges::find(array_names, what);
  if (found == array_names.end()) return std::nullopt;
  return static_cast<array_place>(found - array_names.begin());
}

const stored_array* array_at(const job_data& data, array_place place) {
  const auto* const part = data_part_of(place) == data_part::training ? &data.training
                           : data.validation                          ? &*data.validation
                                                                      : nullptr;
  if (part == nullptr) return nullptr;
  if (place == array_place::training_records || place == array_place::validation_records)
    return &part->records;
  return part->targets ? &*part->targets : nullptr;
}

std::vector<records::ArrayDigest> digests_of(const job_data& data) {
  std::vector<records::ArrayDigest> all;
  for (std::size_t i = 0; i < array_names.size(); ++i) {
    const auto* const array = array_at(data, static_cast<array_place>(i));
    if (array == nullptr) continue;
    auto& made = all.emplace_back();
    made.set_what(array_names[i]);
    made.mutable_dims()->Assign(array->dims.begin(), array->dims.end());
    made.set_type(static_cast<std::uint32_t>(array->type));
    const auto digests = digests_of(*array);
    made.set_block_bytes(digests->block_bytes);
    for (const auto& block : digests->blocks) *made.mutable_blocks() += block;
  }
  return all;
}

result<std::uint64_t> recorded_bytes(const records::ArrayDigest& recorded) {
  const auto wrong = [&] {
    return fail(error_code::protocol, fmt::format("what is recorded of {} makes no sense", recorded.what()));
  };
  const auto size = size_of(static_cast<element_type>(recorded.type()));
  if (recorded.dims().empty() || size == 0) return wrong();
  const auto values =
      count_values({recorded.dims().data(), static_cast<std::size_t>(recorded.dims_size())}, recorded.what());
  if (!values) return wrong();
  const auto bytes = *values * size;
  const auto each = block_bytes_of(bytes);
  if (recorded.block_bytes() != each || recorded.blocks().size() % block_digest_bytes != 0 ||
      blocks_of(recorded) != (bytes + each - 1) / each)
    return wrong();
  return bytes;
}

std::string_view recorded_block(const records::ArrayDigest& recorded, std::uint64_t block) {
  return std::string_view{recorded.blocks()}.substr(static_cast<std::size_t>(block) * block_digest_bytes,
                                                    block_digest_bytes);
}

std::optional<std::vector<std::uint64_t>> blocks_that_differ(const records::ArrayDigest& recorded,
                                                             const stored_array& now) {
  if (!has_shape(recorded, now)) return std::nullopt;
  const auto digests = digests_of(now);
  std::vector<std::uint64_t> differ;
  for (std::uint64_t block = 0; block < digests->blocks.size(); ++block)
    if (recorded_block(recorded, block) != digests->blocks[static_cast<std::size_t>(block)])
      differ.push_back(block);
  return differ;
}

std::string tell_block(const records::ArrayDigest& recorded, std::uint64_t block) {
  const auto each = record_bytes_of(recorded);
  const auto run = bytes_of_block(each * recorded.dims(0), recorded.block_bytes(), block);
  const auto first = run.first / each;
  const auto last = (run.end - 1) / each;
  const auto where = fmt::format("block {} of {}", block, blocks_of(recorded));
  return first == last ? fmt::format("record {} ({})", first, where)
                       : fmt::format("records {} to {} ({})", first, last, where);
}

std::string tell_changes(const recorded_arrays& recorded, const job_data& now, data_part part) {
  std::vector<std::string> changed;
  for (const auto& one : recorded) {
    const auto place = place_of_array(one.what());
    const auto* const array = place && data_part_of(*place) == part ? array_at(now, *place) : nullptr;
    if (array == nullptr) continue;
    if (const auto how = tell_difference(one, *array); !how.empty())
      changed.push_back(fmt::format("{} ('{}'): {}", one.what(), array->name, how));
  }
  return fmt::format("{}", fmt::join(changed, "; "));
}

std::string tell_difference(const records::ArrayDigest& recorded, const stored_array& now) {
  const auto& before = recorded.dims();
  if (before.empty() || before[0] != now.dims.front())
    return fmt::format("{} of them, and the run has {}", now.dims.front(), before.empty() ? 0 : before[0]);
  if (!std::ranges::equal(before, now.dims))
    return fmt::format("[{}] values each, and the run has [{}]",
                       fmt::join(now.dims.begin() + 1, now.dims.end(), ", "),
                       fmt::join(before.begin() + 1, before.end(), ", "));
  if (!has_shape(recorded, now)) return "numbers of another type, or recorded by another dlrun";
  const auto differ = *blocks_that_differ(recorded, now);
  return differ.empty() ? "" : fmt::format("the first that differ: {}", tell_block(recorded, differ.front()));
}

} // namespace dlrun::data
