#include "data/decode.hpp"

#include "data/block_digests.hpp"
#include "data/csv_reader.hpp"
#include "data/idx_reader.hpp"
#include "data/image_folder_reader.hpp"
#include "data/memory_file.hpp"
#include "data/npy_reader.hpp"
#include "data/reader_registry.hpp"
#include "data/tfrecord_reader.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::data {
namespace {

/// Readers are asked for about this much at a time.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t alignment = 64;

/// Where the two arrays lie in one memory file.
struct placement {
  stored_array records;
  std::optional<stored_array> targets;
  std::uint64_t bytes = 0;
};

result<placement> place(const record_layout& layout, const reader_request& request, const std::string& name) {
  placement made;
  made.records.name = name;
  made.records.type = layout.bytes ? element_type::u1 : element_type::f4;
  made.records.dims = {layout.records};
  made.records.dims.insert(made.records.dims.end(), layout.shape.begin(), layout.shape.end());
  const auto values = count_values(made.records.dims, name);
  if (!values) return tl::unexpected(values.error());
  made.bytes = *values * size_of(made.records.type);
  if (!request.with_targets) return made;
  const bool classes = request.targets == target_kind::classes;
  stored_array targets;
  targets.name = request.labels.empty() ? name : request.labels.string();
  targets.type = classes ? element_type::i4 : element_type::f4;
  targets.dims = {layout.records, classes ? 1 : static_cast<std::uint64_t>(layout.target_values)};
  const auto numbers = count_values(targets.dims, targets.name);
  if (!numbers) return tl::unexpected(numbers.error());
  targets.offset = (made.bytes + alignment - 1) / alignment * alignment;
  made.bytes = targets.offset + *numbers * size_of(targets.type);
  made.targets = std::move(targets);
  return made;
}

template <class Value>
std::span<Value> part_of(std::span<std::uint8_t> memory, const stored_array& array, std::uint64_t first,
                         std::uint64_t count) {
  const auto bytes = memory.subspan(static_cast<std::size_t>(array.offset + first * array.bytes_per_record()),
                                    static_cast<std::size_t>(count * array.bytes_per_record()));
  return {reinterpret_cast<Value*>(bytes.data()), bytes.size() / sizeof(Value)};
}

record_buffers buffers_of(std::span<std::uint8_t> memory, const placement& at, const reader_request& request,
                          std::uint64_t first, std::uint64_t count) {
  record_buffers out;
  if (at.records.type == element_type::u1)
    out.bytes = part_of<std::uint8_t>(memory, at.records, first, count);
  else
    out.floats = part_of<float>(memory, at.records, first, count);
  if (!at.targets) return out;
  if (request.targets == target_kind::classes)
    out.classes = part_of<std::int32_t>(memory, *at.targets, first, count);
  else
    out.values = part_of<float>(memory, *at.targets, first, count);
  return out;
}

/// Digests of both arrays, made while they are filled.
class placed_hashers {
public:
  placed_hashers(const placement& at, std::span<const std::uint8_t> memory)
      : at_{at}
      , records_{bytes_of(at.records, memory)} {
    if (at.targets) targets_.emplace(bytes_of(*at.targets, memory));
  }
  void filled(std::uint64_t records) {
    records_.filled(records * at_.records.bytes_per_record());
    if (targets_) targets_->filled(records * at_.targets->bytes_per_record());
  }
  void finish(placement& at) {
    at.records.digests = records_.finish();
    if (targets_) at.targets->digests = targets_->finish();
  }

private:
  static std::span<const std::uint8_t> bytes_of(const stored_array& array,
                                                std::span<const std::uint8_t> memory) {
    return memory.subspan(static_cast<std::size_t>(array.offset),
                          static_cast<std::size_t>(array.records() * array.bytes_per_record()));
  }

  const placement& at_;
  block_hasher records_;
  std::optional<block_hasher> targets_;
};

result<void> fill(reader& source, const reader_request& request, const placement& at,
                  std::span<std::uint8_t> memory, std::optional<placed_hashers>& hashers) {
  const std::uint64_t records = at.records.records();
  const std::uint64_t piece = std::max<std::uint64_t>(1, piece_bytes / at.records.bytes_per_record());
  for (std::uint64_t first = 0; first < records; first += piece) {
    const auto count = std::min(piece, records - first);
    if (auto done = source.read(first, count, buffers_of(memory, at, request, first, count)); !done)
      return done;
    if (hashers) hashers->filled(first + count);
  }
  return {};
}

reader_request request_of(const spec::DatasetSpec& spec, const decode_context& context) {
  return {.records = spec.records(),
          .labels = spec.labels(),
          .options = {spec.options().begin(), spec.options().end()},
          .targets = context.targets,
          .with_targets = context.with_targets};
}

result<decoded_data> decode_by(result<std::unique_ptr<reader>> source, const reader_request& request,
                               const decode_context& context) {
  if (!source) return tl::unexpected(source.error());
  return decode_with(**source, request, request.records, *context.memory, context.with_digests);
}

} // namespace

result<decoded_data> decode_with(reader& source, const reader_request& request, const std::string& name,
                                 memory_budget& memory, bool with_digests) {
  const auto layout = source.open(request);
  if (!layout) return tl::unexpected(layout.error());
  if (layout->records == 0)
    return fail(error_code::bad_data, fmt::format("{}: there are no records in it", name));
  auto at = place(*layout, request, name);
  if (!at) return tl::unexpected(at.error());
  if (auto taken = memory.take(at->bytes, name); !taken) return tl::unexpected(taken.error());
  auto file = memory_file::create(at->bytes, name);
  if (!file) return tl::unexpected(file.error());
  std::optional<placed_hashers> hashers;
  if (with_digests) hashers.emplace(*at, file->bytes());
  if (auto filled = fill(source, request, *at, file->bytes(), hashers); !filled)
    return tl::unexpected(filled.error());
  if (hashers) hashers->finish(*at);
  auto sealed = std::move(*file).seal();
  if (!sealed) return tl::unexpected(sealed.error());
  at->records.memory = std::make_shared<blob>(std::move(*sealed));
  if (at->targets) at->targets->memory = at->records.memory;
  return check_decoded({std::move(at->records), std::move(at->targets), request.targets, 0});
}

result<decoded_data> decode(spec::DatasetSpec& spec, const decode_context& context) {
  const auto request = request_of(spec, context);
  switch (job::format_of(spec)) {
  case job::data_format::idx: return decode_idx(request, *context.memory, context.with_digests);
  case job::data_format::npy: return decode_npy(request);
  case job::data_format::csv: return decode_by(std::make_unique<csv_reader>(spec, context), request, context);
  case job::data_format::image_folder:
    return decode_by(std::make_unique<image_folder_reader>(spec, context), request, context);
  case job::data_format::tfrecord:
    return decode_by(std::make_unique<tfrecord_reader>(spec.tfrecord()), request, context);
  case job::data_format::registered: break;
  }
  return decode_by(make_registered_reader(spec.format(), context.key + ".format"), request, context);
}

} // namespace dlrun::data
