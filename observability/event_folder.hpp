/// A folder of TensorBoard event files, read as TensorBoard reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace dlrun::observability {

struct scalar_point {
  std::uint64_t step = 0;
  double wall_time = 0; ///< seconds since 1970
  float value = 0;

  bool operator==(const scalar_point&) const = default;
};

/// By tag, in the order in which they were written.
using scalar_series = std::map<std::string, std::vector<scalar_point>>;

/// The event files of a folder in the order in which they are read: by name, which begins with the
/// time. None when the folder cannot be read.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

/// All scalars of these files that count: a SessionLog START voids what was written before of its
/// step and beyond. A file ends at what is damaged or cut off, as the last record of a killed
/// writer may be.
scalar_series read_event_folder(const std::filesystem::path& folder);

} // namespace dlrun::observability
