/// Where a verb writes what may be long: a file (base/output_file.hpp), or stdout.
#pragma once

#include "base/output_file.hpp"

#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::cli {

class line_output {
public:
  /// `file`: its path; "" is stdout. @returns as base::output_file::open().
  static result<line_output> open(const std::string& file);

  result<void> write(std::string_view text);
  /// Everything is written: a regular file takes its name, in place of one that was there. Without
  /// it there is no file.
  result<void> finish();

private:
  explicit line_output(std::optional<base::output_file> file)
      : file_(std::move(file)) {}

  result<void> write_waiting();

  std::optional<base::output_file> file_; ///< nothing: stdout
  std::string waiting_;                   ///< for more, that a system call writes together
};

} // namespace dlrun::cli
