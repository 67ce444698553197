/// From the files of a data set to arrays in shared memory, by the reader that its format names.
#pragma once

#include "data/decoded.hpp"
#include "data/memory_budget.hpp"
#include "proto/job_spec.pb.h"
#include <dlrun/reader.hpp>

#include <functional>

namespace dlrun::data {

/// What decoding depends on besides the keys of the data set.
struct decode_context {
  std::string key = "data.train"; ///< where the keys are, for errors
  target_kind targets = target_kind::classes;
  bool with_targets = true;
  /// Vocabularies, names of classes, means may be learnt from these records: they are what is
  /// trained on.
  bool learn = true;
  /// Of training data with a split: the part that nothing may be learnt from. Also tells (records,
  /// part).
  double held_out_part = 0;
  std::uint64_t seed = 0;
  /// Digests of the arrays are made while they are filled; not of what is mapped.
  bool with_digests = false;
  memory_budget* memory = nullptr; ///< never null when used
};

/// Decodes and checks a whole data set. What is learnt is written into `spec`, as if the user had
/// written it, so that other records are later read in the same way. Everything that can be wrong
/// with the files is found here. Arrays of npy and plain IDX files stay where they are, mapped; all
/// others go into memory that is sealed against every change.
/// @returns bad_data or bad_spec, naming the file and the place in it, or the key.
result<decoded_data> decode(spec::DatasetSpec& spec, const decode_context& context);

/// Takes everything from `source` into sealed memory. `name` is what errors call the records;
/// `with_digests` as above.
result<decoded_data> decode_with(reader& source, const reader_request& request, const std::string& name,
                                 memory_budget& memory, bool with_digests = false);

} // namespace dlrun::data
