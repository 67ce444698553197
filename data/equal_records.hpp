/// Which records of one data set are also in another, known by what they hold.
#pragma once

#include "data/decoded.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <vector>

namespace dlrun::data {

/// Some of the records of decoded files.
struct chosen_records {
  decoded_data files;
  std::vector<std::uint64_t> places; ///< ascending
};

/// All of them.
chosen_records all_records(decoded_data files);

/// How many of `records` equal one of `others`: inputs as they are stored, before data.*.normalize,
/// and target. Takes 16 bytes of memory a record and about a second a gigabyte. @returns bad_data
/// when a record cannot be read.
result<std::uint64_t> count_equal(const chosen_records& records, const chosen_records& others);

} // namespace dlrun::data
