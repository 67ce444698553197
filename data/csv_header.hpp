/// The columns of a CSV file: what they are called, and where in a line each one is.
#pragma once

#include <cstddef>
#include <dlrun/error.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace dlrun::data {

/// Columns go by the names of the first line or, where the file has none, by their numbers from 0.
/// Immutable.
class csv_header {
public:
  csv_header() = default;
  explicit csv_header(std::vector<std::string> names);
  static csv_header of_numbers(std::size_t columns);

  bool has_names() const { return !names_.empty(); }
  /// Cells of each line.
  std::size_t size() const { return size_; }
  /// As the specification calls the column: "age", or "3".
  std::string name(std::size_t place) const;

  /// Where the column `name` is. A number has no zeroes in front: each column has one name.
  /// @returns bad_data, without the file: there is no such column, or there are two.
  result<std::size_t> find(const std::string& name) const;

private:
  static constexpr std::size_t twice = static_cast<std::size_t>(-1);

  std::size_t size_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> places_; ///< `twice` for a name of several columns
};

} // namespace dlrun::data
