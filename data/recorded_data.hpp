/// The decoded data of a job beside what its run.record says of it.
#pragma once

#include "data/job_data.hpp"
#include "proto/run_record.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::data {

/// Which of the job's arrays, in the order in which a record has them.
enum class array_place : std::uint8_t {
  training_records,
  training_targets,
  validation_records,
  validation_targets
};
/// What users call it: "the records of data.train".
std::string what_of(array_place place);
/// @returns nothing for a text that is no array's.
std::optional<array_place> place_of_array(const std::string& what);

/// The array there; null where the data has none.
const stored_array* array_at(const job_data& data, array_place place);

/// Of all arrays, in their order. Hashes what was not hashed while it was decoded.
std::vector<records::ArrayDigest> digests_of(const job_data& data);

/// Bytes of an array that the record has. @returns protocol for sizes that cannot be, or when its
/// digests are not those of so many bytes: nothing of it is believed before that.
result<std::uint64_t> recorded_bytes(const records::ArrayDigest& recorded);

/// SHA-256 of a block, as recorded.
std::string_view recorded_block(const records::ArrayDigest& recorded, std::uint64_t block);

/// Blocks in which an array is not the recorded one; nothing when it has another shape or type.
std::optional<std::vector<std::uint64_t>> blocks_that_differ(const records::ArrayDigest& recorded,
                                                             const stored_array& now);

/// Where a block is, for people: "among records 120 to 123 (block 30 of 75)".
std::string tell_block(const records::ArrayDigest& recorded, std::uint64_t block);

/// The arrays of a record.
using recorded_arrays = google::protobuf::RepeatedPtrField<records::ArrayDigest>;

/// What of a part is not as recorded, with file and place; "" when nothing is, or nothing of it was
/// recorded. Arrays that are split off are with the training data.
std::string tell_changes(const recorded_arrays& recorded, const job_data& now, data_part part);

/// What is otherwise than recorded, "" when nothing is.
std::string tell_difference(const records::ArrayDigest& recorded, const stored_array& now);

} // namespace dlrun::data
