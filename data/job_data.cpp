#include "data/job_data.hpp"

#include "data/decode.hpp"
#include "job/choices.hpp"
#include "job/data_reading.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::data {
namespace {

/// With what the training data taught, all that says how records are read is known.
result<void> check_reading(const spec::DatasetSpec& trained, const spec::DatasetSpec& validation) {
  const auto differences = job::reading_differences(trained, validation, job::taught::yes);
  if (differences.empty()) return {};
  return fail(error_code::bad_spec,
              fmt::format("data.validation.{}: {}", differences.front().key, tell(differences.front())));
}

bootstrap::StoredArray to_message(const stored_array& array,
                                  std::span<const std::shared_ptr<const blob>> memory) {
  bootstrap::StoredArray message;
  message.set_memory(static_cast<std::uint32_t>(std::ranges::find(memory, array.memory) - memory.begin()));
  message.set_offset(array.offset);
  message.set_type(static_cast<std::uint32_t>(array.type));
  message.mutable_dims()->Assign(array.dims.begin(), array.dims.end());
  message.set_name(array.name);
  return message;
}

result<stored_array> from_message(const bootstrap::StoredArray& message,
                                  std::span<const std::shared_ptr<const blob>> memory) {
  const auto type = static_cast<element_type>(message.type());
  if (message.memory() >= memory.size() || message.dims().empty() || size_of(type) == 0)
    return fail(error_code::protocol, "the bootstrap message describes data that is not there");
  stored_array array;
  array.memory = memory[message.memory()];
  array.offset = message.offset();
  array.type = type;
  array.dims.assign(message.dims().begin(), message.dims().end());
  array.name = message.name();
  const auto values = count_values(array.dims, array.name);
  const std::uint64_t there = array.memory->bytes().size();
  if (!values || array.offset > there || *values * size_of(type) > there - array.offset)
    return fail(error_code::protocol, fmt::format("{}: is not as large any more as it was", array.name));
  return array;
}

} // namespace

memory_budget memory_budget_of(const spec::DataSpec& spec) {
  return memory_budget{job::parse_bytes(spec.memory_limit()).value_or(0)};
}

result<decoded_data> decode_training(spec::DataSpec& spec, std::uint64_t seed, target_kind wanted,
                                     memory_budget& memory) {
  auto& train = *spec.mutable_train();
  if (!train.has_targets()) job::set_target_kind(wanted, train);
  return decode(train, {.key = "data.train",
                        .targets = job::target_kind_of(train),
                        .held_out_part = spec.validation().has_split() ? spec.validation().split() : 0,
                        .seed = seed,
                        .with_digests = true,
                        .memory = &memory});
}

result<std::optional<decoded_data>> decode_validation(spec::DataSpec& spec, std::uint64_t seed,
                                                      memory_budget& memory) {
  if (!spec.has_validation()) return std::nullopt;
  auto& validation = *spec.mutable_validation();
  if (!validation.has_targets()) validation.set_targets(spec.train().targets());
  job::take_learnt(spec.train(), validation);
  if (validation.has_split()) return std::nullopt;
  if (auto same = check_reading(spec.train(), validation); !same) return tl::unexpected(same.error());
  auto decoded = decode(validation, {.key = "data.validation",
                                     .targets = job::target_kind_of(validation),
                                     .learn = false,
                                     .seed = seed,
                                     .with_digests = true,
                                     .memory = &memory});
  if (!decoded) return tl::unexpected(decoded.error());
  return std::optional{std::move(*decoded)};
}

bool has_what_is_learnt(const spec::DatasetSpec& train) {
  const auto format = job::format_of(train);
  if (format == job::data_format::image_folder) return !train.image_folder().classes().empty();
  if (format != job::data_format::csv) return true;
  const auto& csv = train.csv();
  const auto is_open = [](const spec::CsvColumn& column) {
    return job::type_of(column) == job::column_type::categorical ? column.vocabulary().empty()
                                                                 : column.standardize() && !column.has_mean();
  };
  if (csv.columns().empty() || std::ranges::any_of(csv.columns(), is_open)) return false;
  return job::target_kind_of(train) == target_kind::values || !csv.classes().empty();
}

result<job_data> decode_job_data(spec::DataSpec& spec, std::uint64_t seed, target_kind wanted) {
  auto memory = memory_budget_of(spec);
  auto training = decode_training(spec, seed, wanted, memory);
  if (!training) return tl::unexpected(training.error());
  auto validation = decode_validation(spec, seed, memory);
  if (!validation) return tl::unexpected(validation.error());
  return job_data{std::move(*training), std::move(*validation)};
}

result<std::shared_ptr<const dataset>> open_part(const job_data& data, const spec::DataSpec& spec,
                                                 std::uint64_t seed, data_part part) {
  if (part == data_part::validation && data.validation)
    return array_dataset::create(*data.validation, spec.validation().normalize());
  auto whole = array_dataset::create(data.training, spec.train().normalize());
  if (!whole || !spec.validation().has_split()) return whole;
  const auto records = (*whole)->record_count();
  const auto held_out = split::held_out_records(spec.validation().split(), records);
  if (!held_out) return tl::unexpected(held_out.error());
  return make_part(std::move(*whole), {seed, records, *held_out}, part);
}

std::vector<std::shared_ptr<const blob>> memory_of(const job_data& data) {
  std::vector<std::shared_ptr<const blob>> all;
  const auto add = [&](const decoded_data& decoded) {
    for (const auto& memory : {decoded.records.memory, decoded.targets ? decoded.targets->memory : nullptr})
      if (memory != nullptr && std::ranges::find(all, memory) == all.end()) all.push_back(memory);
  };
  add(data.training);
  if (data.validation) add(*data.validation);
  return all;
}

bootstrap::DecodedData to_message(const decoded_data& data,
                                  std::span<const std::shared_ptr<const blob>> memory) {
  bootstrap::DecodedData message;
  *message.mutable_records() = to_message(data.records, memory);
  if (data.targets) *message.mutable_targets() = to_message(*data.targets, memory);
  message.set_classes(data.kind == target_kind::classes);
  message.set_class_count(data.class_count);
  return message;
}

result<decoded_data> from_message(const bootstrap::DecodedData& message,
                                  std::span<const std::shared_ptr<const blob>> memory) {
  decoded_data data;
  auto records = from_message(message.records(), memory);
  if (!records) return tl::unexpected(records.error());
  data.records = std::move(*records);
  if (message.has_targets()) {
    auto targets = from_message(message.targets(), memory);
    if (!targets) return tl::unexpected(targets.error());
    data.targets = std::move(*targets);
  }
  data.kind = message.classes() ? target_kind::classes : target_kind::values;
  data.class_count = message.class_count();
  return data;
}

result<std::shared_ptr<const dataset>> open_records(const spec::DatasetSpec& trained,
                                                    const std::filesystem::path& file,
                                                    std::uint64_t memory_limit) {
  memory_budget memory(memory_limit);
  auto spec = trained;
  spec.set_records(file.string());
  spec.clear_labels();
  auto decoded = decode(spec, {.key = "data.train",
                               .targets = job::target_kind_of(spec),
                               .with_targets = false,
                               .learn = false,
                               .memory = &memory});
  if (!decoded) return tl::unexpected(decoded.error());
  return array_dataset::create(std::move(*decoded), spec.normalize());
}

} // namespace dlrun::data
