/// Divides a data set into what is trained on and what is held out to validate with.
#pragma once

#include "data/dataset.hpp"
#include <dlrun/random.hpp>

#include <memory>

namespace dlrun::data {

/// A division of [0, records) into `held_out` records for validation and the others, both in their
/// order. A stratified sample by position: the range is cut into `held_out` pieces of nearly equal
/// length, and of each piece one record, drawn from the seed, is held out. So both parts are spread
/// evenly over a file that is sorted by anything. A pure function of its arguments, evaluated at
/// any place in O(1) and without memory.
class split {
public:
  /// `held_out` must be in [1, records - 1].
  split(std::uint64_t seed, std::uint64_t records, std::uint64_t held_out);

  /// `part` of `records`, rounded, but at least one record and not all of them.
  /// @returns bad_data when there is only one record.
  static result<std::uint64_t> held_out_records(double part, std::uint64_t records);

  std::uint64_t training_records() const { return records_ - held_out_; }
  std::uint64_t validation_records() const { return held_out_; }
  /// Index in the whole of record `i` of the part that is trained on; `i` must be <
  /// training_records().
  std::uint64_t training(std::uint64_t i) const;
  /// The same of the part that is held out.
  std::uint64_t validation(std::uint64_t i) const;
  bool is_held_out(std::uint64_t index) const;

private:
  std::uint64_t begin_of(std::uint64_t piece) const;

  std::uint64_t records_;
  std::uint64_t held_out_;
  random_stream draws_;
};

enum class data_part : std::uint8_t { training, validation };

/// One part of `whole`, itself a data set.
std::shared_ptr<const dataset> make_part(std::shared_ptr<const dataset> whole, const split& division,
                                         data_part part);

} // namespace dlrun::data
