/// Decoded arrays as a data set.
#pragma once

#include "data/dataset.hpp"
#include "data/decoded.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::data {

/// Reads records from decoded arrays and normalises them. A stored byte becomes (byte / 255 - mean)
/// / std, a value of another type (value - mean) / std; see data/normalisation.hpp for the
/// roundings.
class array_dataset final : public dataset {
public:
  /// `data` must have passed check_decoded(). @returns bad_data when `normalize` has another number
  /// of values than records have channels: their first dimension.
  static result<std::shared_ptr<const dataset>> create(decoded_data data,
                                                       const spec::NormalizeSpec& normalize);

  std::uint64_t record_count() const override { return data_.records.records(); }
  const std::vector<std::uint32_t>& record_shape() const override { return shape_; }
  target_kind targets() const override { return data_.kind; }
  std::int64_t target_values() const override;
  std::uint32_t class_count() const override { return data_.class_count; }
  std::vector<float> zeroes() const override;
  const std::string& records_name() const override { return data_.records.name; }
  const std::string& targets_name() const override;
  result<void> read(std::span<const std::uint64_t> indices, std::span<float> records,
                    const target_buffers& targets) const override;
  result<void> read_targets(std::span<const std::uint64_t> indices,
                            const target_buffers& targets) const override;
  bool may_be_not_finite() const override { return is_float(data_.records.type); }
  result<std::int32_t> class_of(std::uint64_t index) const override { return data_.class_of(index); }

private:
  struct channel {
    double mean = 0;
    double std = 1;
    float zero = 0; ///< what a stored zero becomes, whatever its type
  };

  array_dataset() = default;
  void read_record(std::uint64_t index, std::span<float> out) const;
  /// Of the record at `index`, to place `to` of the buffers.
  result<void> read_target(std::uint64_t index, std::size_t to, const target_buffers& targets) const;
  void check_room(std::size_t records, const target_buffers& targets) const;
  void expect_record(std::uint64_t index) const;

  decoded_data data_;
  std::vector<std::uint32_t> shape_;
  std::vector<channel> channels_; ///< one for all, or one for each first index of a record
};

} // namespace dlrun::data
