// What a power cut leaves.
#include "tests/persistence/faulty_file_system.hpp"

#include <filesystem>
#include <fstream>

namespace dlrun::test {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t page_bytes = 4096;

} // namespace

void faulty_file_system::undo(const name_change& change) {
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

void faulty_file_system::lose_unsynced_bytes(const std::string& path, const file_state& file) {
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
void faulty_file_system::lose_what_was_written_over(const std::string& path, const file_state& file) {
  const auto from = file.synced_bytes + random_up_to(file.bytes - file.synced_bytes);
  std::fstream content(path, std::ios::in | std::ios::out | std::ios::binary);
  content.seekp(static_cast<std::streamoff>(from));
  content << std::string(file.bytes - from, '\xa5');
  content.close();
  fs::resize_file(path, std::max(file.reused_bytes, from));
}

void faulty_file_system::restore_power() {
  const std::lock_guard lock(mutex_);
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
  cut_at_.reset();
  cut_ = false;
}

} // namespace dlrun::test
