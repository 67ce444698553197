/// The data of a job: decoded once, shared by all of its processes.
#pragma once

#include "data/array_dataset.hpp"
#include "data/memory_budget.hpp"
#include "data/split.hpp"
#include "proto/decoded_data.pb.h"

namespace dlrun::data {

/// What was decoded. Copies share the memory. Immutable and thread-safe.
struct job_data {
  decoded_data training; ///< all records of data.train, also those that are split off
  /// Records of data.validation's own files; nothing when there are none, or they are split off.
  std::optional<decoded_data> validation;
};

/// data.train of a job, decoded and checked as below, with digests.
result<decoded_data> decode_training(spec::DataSpec& spec, std::uint64_t seed, target_kind wanted,
                                     memory_budget& memory);
/// The same of data.validation's own files; nothing when there are none, or they are split off.
/// What the training data teaches must be in `spec`. @returns bad_spec also where validation data
/// would be read otherwise than training data (job/data_reading.hpp).
result<std::optional<decoded_data>> decode_validation(spec::DataSpec& spec, std::uint64_t seed,
                                                      memory_budget& memory);
/// Is there nothing that reading data.train would teach? Not certain of a table whose classes have
/// no names: false.
bool has_what_is_learnt(const spec::DatasetSpec& train);
/// What data.memory_limit allows.
memory_budget memory_budget_of(const spec::DataSpec& spec);

/// Decodes all data of a job and checks it, within data.memory_limit. `wanted` is what the model's
/// loss takes, `seed` train.seed. What is learnt from the training data (vocabularies, names of
/// classes, means) and what was left open (targets) is written into `spec`: the same job, read
/// again, decodes the same.
/// @returns bad_data or bad_spec, naming the file and the place in it, or the key.
result<job_data> decode_job_data(spec::DataSpec& spec, std::uint64_t seed, target_kind wanted);

/// One part of it as records to compute with. data.validation must be there to be asked for.
/// @returns bad_data when data.*.normalize or the split does not fit the records.
result<std::shared_ptr<const dataset>> open_part(const job_data& data, const spec::DataSpec& spec,
                                                 std::uint64_t seed, data_part part);

/// The memory behind it, each once; every one has a descriptor.
std::vector<std::shared_ptr<const blob>> memory_of(const job_data& data);

/// For another process that inherits the descriptors of memory_of(), in this order.
bootstrap::DecodedData to_message(const decoded_data& data,
                                  std::span<const std::shared_ptr<const blob>> memory);
/// The same there. @returns protocol when it makes no sense.
result<decoded_data> from_message(const bootstrap::DecodedData& message,
                                  std::span<const std::shared_ptr<const blob>> memory);

/// Records of a file that was not trained on, decoded as `trained` (a filled data.train) says;
/// `file` stands for `records`, and targets are not asked for. Takes memory up to `memory_limit`
/// bytes, 0 being half of what this process may use.
result<std::shared_ptr<const dataset>>
open_records(const spec::DatasetSpec& trained, const std::filesystem::path& file, std::uint64_t memory_limit);

} // namespace dlrun::data
