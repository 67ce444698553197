/// A data set in the form that processes share: plain arrays in mapped memory.
#pragma once

#include "data/blob.hpp"
#include "data/element_type.hpp"
#include <dlrun/batch.hpp>

#include <memory>
#include <optional>

namespace dlrun::data {

struct block_digests;

/// An array in C order (last dimension fastest), little-endian, anywhere in some memory.
struct stored_array {
  std::shared_ptr<const blob> memory;
  std::uint64_t offset = 0; ///< of the first value, in bytes
  element_type type = element_type::u1;
  std::vector<std::uint64_t> dims; ///< records first; none is 0
  std::string name;                ///< the file it came from, for errors
  /// Made while it was filled (data/block_digests.hpp); null where they were not.
  std::shared_ptr<const block_digests> digests{};

  std::uint64_t records() const { return dims.front(); }
  std::uint64_t values_per_record() const;
  std::uint64_t bytes_per_record() const { return values_per_record() * size_of(type); }
  std::span<const std::uint8_t> bytes() const {
    return memory->bytes().subspan(static_cast<std::size_t>(offset),
                                   static_cast<std::size_t>(records() * bytes_per_record()));
  }
  std::span<const std::uint8_t> record(std::uint64_t index) const {
    const auto size = static_cast<std::size_t>(bytes_per_record());
    return memory->bytes().subspan(static_cast<std::size_t>(offset + index * size), size);
  }
};

/// What a reader makes of its files. Copies share the memory.
struct decoded_data {
  stored_array records;
  /// One for each record; nothing where only records were asked for.
  std::optional<stored_array> targets;
  target_kind kind = target_kind::classes;
  /// Largest class + 1; 0 for values.
  std::uint32_t class_count = 0;

  /// Class number `index`. Checked: what is behind it may be a file.
  result<std::int32_t> class_of(std::uint64_t index) const;
};

/// Number of values in `dims`. @returns bad_data naming `name` when that is more than 2^46 or a
/// dimension is 0: nothing that is believed before memory is taken.
result<std::uint64_t> count_values(std::span<const std::uint64_t> dims, const std::string& name);

/// Checks what readers cannot promise one by one: arrays lie within their memory, there is at least
/// one record, there are as many targets as records, a class is one whole number from 0, a value is
/// finite. Sets class_count.
/// @returns bad_data naming the file and the record.
result<decoded_data> check_decoded(decoded_data data);

} // namespace dlrun::data
