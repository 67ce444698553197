/// Records as normalised floats, each with its target.
#pragma once

#include <dlrun/batch.hpp>

#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlrun::data {

/// Where targets are read to. One of the two is used, by dataset::targets(); both are empty for a
/// data set without targets.
struct target_buffers {
  std::span<std::int32_t> classes; ///< (records)
  std::span<float> values;         ///< (records, target_values())
};

/// n records of equal shape, each with one target. Immutable and thread-safe.
class dataset {
public:
  virtual ~dataset() = default;
  dataset() = default;
  dataset(const dataset&) = delete;
  dataset& operator=(const dataset&) = delete;

  virtual std::uint64_t record_count() const = 0;
  /// Shape of one record as the files say, without the record dimension: {28, 28}, {3, 32, 32};
  /// images have their channels first. Empty where a record is a single number.
  virtual const std::vector<std::uint32_t>& record_shape() const = 0;
  virtual target_kind targets() const = 0;
  /// Numbers in the target of one record: 1 for a class, 0 where there are no targets.
  virtual std::int64_t target_values() const = 0;
  /// Largest class + 1; 0 where targets are values.
  virtual std::uint32_t class_count() const = 0;
  /// What a stored 0 (black) is after normalisation: one number for all channels, or one a channel.
  virtual std::vector<float> zeroes() const = 0;
  /// Files that records and targets come from, for errors.
  virtual const std::string& records_name() const = 0;
  virtual const std::string& targets_name() const = 0;

  /// Reads the records at `indices`, in that order: records is (indices.size(), record_values())
  /// row by row, targets as target_buffers say. Both are overwritten. Indices must be <
  /// record_count().
  /// @returns bad_data when a file that is mapped was changed since it was opened.
  virtual result<void> read(std::span<const std::uint64_t> indices, std::span<float> records,
                            const target_buffers& targets) const = 0;
  /// The targets alone of the records at `indices`, as read() does.
  virtual result<void> read_targets(std::span<const std::uint64_t> indices,
                                    const target_buffers& targets) const = 0;
  /// Whether a stored number may be NaN or infinite, or become so by normalisation.
  virtual bool may_be_not_finite() const = 0;
  /// Number of the record in its files, from 0, which people know it by.
  virtual std::uint64_t number_in_files(std::uint64_t index) const { return index; }
  /// The class of one record; targets() must be classes.
  virtual result<std::int32_t> class_of(std::uint64_t index) const = 0;

  /// Number of values of one record, the product of record_shape().
  std::uint64_t record_values() const;

  /// Does this data fit a model that takes `input` (shape of one record) and whose loss takes
  /// `wanted`? `outputs` is the number of classes the model tells apart, or the floats of one
  /// record's target. Shapes fit when they are equal, or of unequal length and hold the same number
  /// of values: files of single-channel images know no channel dimension.
  /// @returns bad_data naming the file, both shapes, or the first record whose label the model has
  /// no output for.
  result<void> check_fits(std::span<const std::int64_t> input, target_kind wanted,
                          std::int64_t outputs) const;

  /// Is each number of each record finite, as the model gets it? Reads everything, by several
  /// threads, unless it follows from how the records are stored. @returns bad_data naming file,
  /// record, place and value.
  result<void> check_finite() const;

  /// Finds what is wrong with the targets of the records at the places that it is given.
  using target_check = std::function<std::optional<std::pair<std::size_t, std::string>>(const batch& batch)>;
  /// Calls `find_bad` with the targets of all records, in pieces; batch::records is empty. It
  /// returns the place in the piece and "has the target ..." of the first that is wrong. @returns
  /// bad_data naming file and record.
  result<void> check_targets(const target_check& find_bad) const;

  /// Are the values at the places [first, first + count) of every record whole numbers from 0 to
  /// rows - 1, as the layer `layer` takes them? Reads everything. @returns bad_data naming file,
  /// record, place and value.
  result<void> check_rows(std::int64_t first, std::int64_t count, std::int64_t rows,
                          std::string_view layer) const;

private:
  using record_check =
      std::function<result<void>(std::span<const std::uint64_t> indices, std::span<const float> records)>;
  result<void> for_records(const record_check& look) const;
  result<void> check_shape(std::span<const std::int64_t> input) const;
  result<void> check_classes(std::int64_t outputs) const;
};

} // namespace dlrun::data
