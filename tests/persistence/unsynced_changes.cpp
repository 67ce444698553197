#include "tests/persistence/unsynced_changes.hpp"

#include <filesystem>
#include <fstream>

namespace dlrun::test {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t page_bytes = 4096;

} // namespace

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

std::uint64_t unsynced_changes::random_up_to(std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit)(random_);
}

void unsynced_changes::know(const std::string& path) {
  if (!files_.contains(path)) files_[path] = {fs::file_size(path), fs::file_size(path)};
}

std::string unsynced_changes::bury(const std::string& path) {
  auto goal = folder_of(path) + "/" + grave + std::to_string(++buried_);
  fs::rename(path, goal);
  if (const auto found = files_.find(path); found != files_.end()) {
    files_[goal] = found->second;
    files_.erase(path);
  }
  return goal;
}

void unsynced_changes::created(const std::string& path, const std::string& buried) {
  names_[folder_of(path)].push_back({path, "", buried});
}

void unsynced_changes::removed(const std::string& path, const std::string& buried) {
  names_[folder_of(path)].push_back({"", path, buried});
}

void unsynced_changes::renamed(const std::string& from, const std::string& to, const std::string& buried) {
  names_[folder_of(to)].push_back({to, from, buried});
  files_[to] = files_[from];
  files_.erase(from);
}

void unsynced_changes::directory_synced(const std::string& path) {
  for (const auto& change : names_[path])
    if (!change.buried.empty()) fs::remove(change.buried);
  names_.erase(path);
}

void unsynced_changes::undo(const name_change& change) {
  if (!change.path.empty()) {
    if (change.from.empty()) {
      fs::remove_all(change.path);
      files_.erase(change.path);
    } else if (fs::exists(change.path)) {
      fs::rename(change.path, change.from);
      files_[change.from] = files_[change.path];
      files_.erase(change.path);
    }
  }
  if (change.buried.empty()) return;
  const auto& name = change.path.empty() ? change.from : change.path;
  fs::rename(change.buried, name);
  if (const auto found = files_.find(change.buried); found != files_.end()) {
    files_[name] = found->second;
    files_.erase(change.buried);
  }
}

void unsynced_changes::lose_unsynced_bytes(const std::string& path, const file_state& file) {
  if (!fs::exists(path) || file.bytes <= file.synced_bytes) return;
  if (file.reused_bytes > 0) return lose_what_was_written_over(path, file);
  // Nothing, all, or something of it.
  const auto choice = random_up_to(3);
  const auto unsynced = file.bytes - file.synced_bytes;
  const auto kept = choice == 0 ? 0 : choice == 1 ? unsynced : random_up_to(unsynced);
  const auto size = file.synced_bytes + kept;
  fs::resize_file(path, size);
  // The size can reach the disk before the bytes do.
  const auto first_page = (file.synced_bytes / page_bytes + 1) * page_bytes;
  if (random_up_to(2) != 0 || first_page >= size) return;
  const auto from = first_page + random_up_to((size - first_page) / page_bytes) * page_bytes;
  if (from >= size) return;
  fs::resize_file(path, from);
  fs::resize_file(path, size);
}

/// From some byte on it is as before. Of what was there nothing is kept; but it is neither zeroes
/// nor what was written.
void unsynced_changes::lose_what_was_written_over(const std::string& path, const file_state& file) {
  const auto from = file.synced_bytes + random_up_to(file.bytes - file.synced_bytes);
  std::fstream content(path, std::ios::in | std::ios::out | std::ios::binary);
  content.seekp(static_cast<std::streamoff>(from));
  content << std::string(file.bytes - from, '\xa5');
  content.close();
  fs::resize_file(path, std::max(file.reused_bytes, from));
}

void unsynced_changes::lose() {
  for (auto& [folder, changes] : names_) {
    if (!fs::exists(folder)) continue;
    for (auto lost = random_up_to(changes.size()); lost > 0; --lost) {
      undo(changes.back());
      changes.pop_back();
    }
    for (const auto& change : changes)
      if (!change.buried.empty()) fs::remove(change.buried);
  }
  names_.clear();
  for (const auto& [path, file] : files_) lose_unsynced_bytes(path, file);
  files_.clear();
}

} // namespace dlrun::test
