/// The classes of a CSV file's target: numbers, or names and their numbers.
#pragma once

#include "data/csv_columns.hpp"
#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <string_view>
#include <utility>

namespace dlrun::data {

/// Cells that are whole numbers are class numbers, unless there are names: then all are names.
/// Errors (bad_data) come without the place.
class csv_classes {
public:
  /// The names that are known are those of `spec`; none: numbers, or what is learnt.
  explicit csv_classes(const spec::CsvSpec& spec);

  bool has_names() const { return names_.size() > 0; }

  /// The next cell of the training data. @returns bad_data for a missing one, a name behind
  /// numbers, what a program writes where it has no number, broken text and more names than there
  /// may be.
  result<void> learn(std::string_view text);
  /// All are learnt. Writes the names, sorted, into `spec`. @returns their bytes; 0 for numbers.
  std::size_t finish(spec::CsvSpec& spec);

  /// @returns bad_data for a missing cell and a class that is not known.
  result<std::int32_t> number_of(std::string_view text) const;

private:
  vocabulary names_;
  bool has_learnt_ = false;
  bool all_are_numbers_ = true;
};

} // namespace dlrun::data
