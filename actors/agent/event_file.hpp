/// A file of lines or records (events.jsonl): none of them is torn, or lost while the disk is full.
#pragma once

#include "base/unique_fd.hpp"

#include <filesystem>
#include <string>

namespace dlrun::agent {

/// Appends whole lines. What the disk does not take waits for the next line, or for flush(), up to
/// 1 MiB; lines beyond are lost.
class event_file {
public:
  /// A file that cannot be opened takes nothing.
  explicit event_file(const std::filesystem::path& path);

  /// Ends a file of JSON lines with a whole one: what a process that died in the middle of a line
  /// left of it, or a file system that lost power made of it, is cut off, so that the next line
  /// stands alone. To be called before others write.
  static void mend_last_line(const std::filesystem::path& path);

  /// `line` ends with a newline, or tells its length in itself.
  void append(const std::string& line);
  void flush();
  /// errno of why not all of it is in the file; 0 when it is.
  int failure() const { return failure_; }

private:
  base::unique_fd fd_;
  std::string waiting_;
  int failure_ = 0;
};

} // namespace dlrun::agent
