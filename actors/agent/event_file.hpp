/// events.jsonl: one line for each event, none of them torn or lost while the disk is full.
#pragma once

#include "transport/unique_fd.hpp"

#include <filesystem>
#include <string>

namespace dlrun::agent {

/// Appends whole lines. What the disk does not take waits for the next line, or for flush().
class event_file {
public:
  /// A file that cannot be opened takes nothing, and nothing is said of it: the lines are shown and logged
  /// too.
  explicit event_file(const std::filesystem::path& path);

  /// `line` ends with a newline.
  void append(const std::string& line);
  void flush();

private:
  transport::unique_fd fd_;
  std::string waiting_;
};

} // namespace dlrun::agent
