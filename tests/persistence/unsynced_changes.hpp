/// What a power cut takes back: bytes and names that were not synced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace dlrun::test {

/// Files that were removed and whose removal is not durable are kept under names that begin so.
/// RocksDB's and our own listings take no notice of them.
inline constexpr const char* grave = ".buried-";

std::string folder_of(const std::string& path);

/// Of each file how much is synced, of each directory the changes since its last sync. What is lost
/// follows from a seed. Not thread-safe.
class unsynced_changes {
public:
  struct file_state {
    std::uint64_t bytes = 0; ///< written
    std::uint64_t synced_bytes = 0;
    std::uint64_t reused_bytes = 0; ///< of the file before it was written over
    std::uint64_t size() const { return std::max(bytes, reused_bytes); }
  };

  explicit unsynced_changes(std::uint64_t seed)
      : random_(seed) {}

  file_state& file(const std::string& path) { return files_[path]; }
  /// One that is opened as it lies there: all of it is durable.
  void know(const std::string& path);

  /// Keeps what has the name under another. @returns that.
  std::string bury(const std::string& path);
  /// `buried`: what had the name before, or "".
  void created(const std::string& path, const std::string& buried);
  void removed(const std::string& path, const std::string& buried);
  void renamed(const std::string& from, const std::string& to, const std::string& buried);
  void directory_synced(const std::string& path);

  /// The power is back: changes the files to what is left.
  void lose();
  std::uint64_t random_up_to(std::uint64_t limit);

private:
  /// What was done to a directory and can be undone.
  struct name_change {
    std::string path;
    /// Of a renaming: where it was.
    std::string from;
    /// What had the name before, if something had: now kept under this name.
    std::string buried;
  };

  void undo(const name_change& change);
  void lose_unsynced_bytes(const std::string& path, const file_state& file);
  void lose_what_was_written_over(const std::string& path, const file_state& file);

  std::mt19937_64 random_;
  std::map<std::string, file_state> files_;
  std::map<std::string, std::vector<name_change>> names_; ///< by directory
  std::uint64_t buried_ = 0;
};

} // namespace dlrun::test
