/// From stored values to the floats a model is trained on.
#pragma once

#include "data/element_type.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace dlrun::data {

/// Converts `out.size()` values of `type` at `bytes` (little-endian, any alignment). 64-bit types
/// are rounded.
void to_floats(std::span<const std::uint8_t> bytes, element_type type, std::span<float> out);

/// (value - mean) / std of the `out.size()` values at `bytes`; of u1, (value / 255 - mean) / std.
/// u1 and f4 with mean and std and every operation rounded to float32: the bits that numpy and
/// PyTorch give for float32 arrays and Python constants. i4, i8 and f8 in double, rounded once at
/// the end.
void normalise(std::span<const std::uint8_t> bytes, element_type type, double mean, double std,
               std::span<float> out);

/// Mean and spread of a run of numbers, added one after the other in double.
class running_statistics {
public:
  /// B. P. Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962.
  void add(double value);
  double mean() const { return mean_; }
  /// Root of the mean squared deviation; 1 where all numbers are equal, so that dividing by it
  /// changes nothing.
  double std() const;

private:
  double count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

} // namespace dlrun::data
