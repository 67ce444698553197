/// Whole lines of a file that may still grow.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace dlrun::cli {

/// Reads a file line by line, as far as it is written, and goes on later where it stopped. Not
/// thread-safe.
class line_tail {
public:
  /// A file that is not there yet has no lines; it is looked for again at each call.
  explicit line_tail(std::filesystem::path file);

  /// The next line without its newline; nothing while the file ends, or has only part of a line.
  std::optional<std::string> next();
  /// What stands behind the last newline: a line in the making, or one that was torn.
  std::optional<std::string> rest();

private:
  std::filesystem::path file_;
  std::ifstream in_;
  std::string part_; ///< of a line whose newline is not there yet
};

} // namespace dlrun::cli
