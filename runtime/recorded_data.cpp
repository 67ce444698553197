#include "runtime/recorded_data.hpp"

#include "data/block_digests.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

constexpr std::array<const char*, 4> names{"the records of data.train", "the targets of data.train",
                                           "the records of data.validation",
                                           "the targets of data.validation"};

bool has_shape(const records::ArrayDigest& recorded, const data::stored_array& now) {
  return std::ranges::equal(recorded.dims(), now.dims) &&
         recorded.type() == static_cast<std::uint32_t>(now.type) && recorded_bytes(recorded).has_value();
}

std::uint64_t record_bytes_of(const records::ArrayDigest& recorded) {
  std::uint64_t bytes = data::size_of(static_cast<data::element_type>(recorded.type()));
  for (int i = 1; i < recorded.dims_size(); ++i) bytes *= recorded.dims(i);
  return bytes;
}

std::uint64_t blocks_of(const records::ArrayDigest& recorded) {
  return recorded.blocks().size() / data::block_digest_bytes;
}

} // namespace

std::string what_of(array_place place) { return names[static_cast<std::size_t>(place)]; }

std::optional<array_place> place_of_array(const std::string& what) {
  const auto found = std::ranges::find(names, what);
  if (found == names.end()) return std::nullopt;
  return static_cast<array_place>(found - names.begin());
}

const data::stored_array* array_at(const data::job_data& data, array_place place) {
  const bool is_validation =
      place == array_place::validation_records || place == array_place::validation_targets;
  const auto* const part = !is_validation ? &data.training : data.validation ? &*data.validation : nullptr;
  if (part == nullptr) return nullptr;
  if (place == array_place::training_records || place == array_place::validation_records)
    return &part->records;
  return part->targets ? &*part->targets : nullptr;
}

std::vector<records::ArrayDigest> digests_of(const data::job_data& data) {
  std::vector<records::ArrayDigest> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* const array = array_at(data, static_cast<array_place>(i));
    if (array == nullptr) continue;
    auto& made = all.emplace_back();
    made.set_what(names[i]);
    made.mutable_dims()->Assign(array->dims.begin(), array->dims.end());
    made.set_type(static_cast<std::uint32_t>(array->type));
    const auto digests = data::digests_of(*array);
    made.set_block_bytes(digests->block_bytes);
    for (const auto& block : digests->blocks) *made.mutable_blocks() += block;
  }
  return all;
}

result<std::uint64_t> recorded_bytes(const records::ArrayDigest& recorded) {
  const auto wrong = [&] {
    return fail(error_code::protocol, fmt::format("what is recorded of {} makes no sense", recorded.what()));
  };
  const auto size = data::size_of(static_cast<data::element_type>(recorded.type()));
  if (recorded.dims().empty() || size == 0) return wrong();
  const auto values = data::count_values(
      {recorded.dims().data(), static_cast<std::size_t>(recorded.dims_size())}, recorded.what());
  if (!values) return wrong();
  const auto bytes = *values * size;
  const auto each = data::block_bytes_of(bytes);
  if (recorded.block_bytes() != each || recorded.blocks().size() % data::block_digest_bytes != 0 ||
      blocks_of(recorded) != (bytes + each - 1) / each)
    return wrong();
  return bytes;
}

std::string_view recorded_block(const records::ArrayDigest& recorded, std::uint64_t block) {
  return std::string_view{recorded.blocks()}.substr(
      static_cast<std::size_t>(block) * data::block_digest_bytes, data::block_digest_bytes);
}

std::optional<std::vector<std::uint64_t>> blocks_that_differ(const records::ArrayDigest& recorded,
                                                             const data::stored_array& now) {
  if (!has_shape(recorded, now)) return std::nullopt;
  const auto digests = data::digests_of(now);
  std::vector<std::uint64_t> differ;
  for (std::uint64_t block = 0; block < digests->blocks.size(); ++block)
    if (recorded_block(recorded, block) != digests->blocks[static_cast<std::size_t>(block)])
      differ.push_back(block);
  return differ;
}

std::string tell_block(const records::ArrayDigest& recorded, std::uint64_t block) {
  const auto each = record_bytes_of(recorded);
  const auto run = data::bytes_of_block(each * recorded.dims(0), recorded.block_bytes(), block);
  const auto first = run.first / each;
  const auto last = (run.end - 1) / each;
  const auto where = fmt::format("block {} of {}", block, blocks_of(recorded));
  return first == last ? fmt::format("record {} ({})", first, where)
                       : fmt::format("records {} to {} ({})", first, last, where);
}

std::string tell_difference(const records::ArrayDigest& recorded, const data::stored_array& now) {
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

} // namespace dlrun::runtime
