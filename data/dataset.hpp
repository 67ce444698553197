/// A data set in memory: records as normalised floats, labels as integers.
#pragma once

#include "data/blob.hpp"
#include "proto/job_spec.pb.h"

#include <array>
#include <memory>

namespace dlrun::data {

struct idx_view;

/// n records of equal shape with one label each. Immutable and thread-safe.
class dataset {
public:
  /// Takes decoded IDX bytes (see open_idx, decode_idx_to_memfd, blob::from_fd).
  /// @returns bad_data when either is not IDX, labels are not one-dimensional, or the counts differ.
  static result<std::shared_ptr<const dataset>> open(const spec::DatasetSpec& spec, blob records,
                                                     blob labels);
  /// The same, opening the paths that the spec names. Where it names no labels there are none: read() then
  /// takes no memory for them, and class_count() is 0.
  static result<std::shared_ptr<const dataset>> open(const spec::DatasetSpec& spec);

  std::uint64_t record_count() const { return record_count_; }
  /// Shape of one record as the file says, without the record dimension: {28, 28}.
  const std::vector<std::uint32_t>& record_shape() const { return record_shape_; }
  /// Number of values of one record, the product of record_shape().
  std::uint64_t record_values() const { return record_values_; }
  /// Largest label + 1.
  std::uint32_t class_count() const { return class_count_; }

  /// Reads the records at `indices`, in that order: records is (indices.size(), record_values()) row by row,
  /// labels is (indices.size()). Both are overwritten. Indices must be < record_count(). A value is (byte /
  /// 255 - mean) / std, each operation rounded to float32, as numpy and PyTorch do it.
  void read(std::span<const std::uint64_t> indices, std::span<float> records,
            std::span<std::int32_t> labels) const;

  /// The label of one record.
  std::int32_t label(std::uint64_t index) const { return labels_[index]; }

  /// Does this data fit a model that takes `input` (shape of one record) and has `outputs` classes? Shapes
  /// fit when they hold the same number of values: files know no channel dimension.
  /// @returns bad_data naming the file, both shapes, or the first record whose label the model has no output
  /// for.
  result<void> check_fits(std::span<const std::int64_t> input, std::int64_t outputs) const;

  const std::string& records_name() const { return records_.name(); }
  const std::string& labels_name() const { return labels_blob_.name(); }

private:
  dataset() = default;
  /// All but the labels; `view` is of `records`.
  static std::shared_ptr<dataset> with_records(const spec::DatasetSpec& spec, blob records,
                                               const idx_view& view);

  blob records_;
  blob labels_blob_;
  std::span<const std::uint8_t> values_;
  std::span<const std::uint8_t> labels_;
  std::vector<std::uint32_t> record_shape_;
  std::uint64_t record_count_ = 0;
  std::uint64_t record_values_ = 0;
  std::uint32_t class_count_ = 0;
  std::array<float, 256> normalised_{};
};

} // namespace dlrun::data
