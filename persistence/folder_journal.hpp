/// folder_journal: the journal of a coordinator that stays on its host.
#pragma once

#include "persistence/file_system.hpp"
#include "persistence/journal.hpp"

#include <memory>

namespace dlrun::persistence {

struct journal_options {
  /// Created when missing. Nobody else may write there.
  std::string directory;
  /// Incarnation that opens; must be above every one that has opened it.
  incarnation owner;
  /// Null: the operating system's.
  std::shared_ptr<file_system> files;
};

/// A journal in a folder on disk, which one process at a time can open. Every write is synced when
/// it returns. Calls block for some milliseconds.
///
/// Damage is never ignored: before RocksDB drops something from the end of its log in silence, this
/// class looks at it. Only a write that was torn in the middle, hence never acknowledged, is
/// dropped; any other damage is storage_damaged, naming the file, the offset and the way out.
class folder_journal : public journal {
public:
  /// Opens or creates, and writes the owner, synced.
  /// @returns in_use while another live process holds it; fenced when `owner` is not above the last
  /// one; storage_damaged.
  static result<std::unique_ptr<folder_journal>> open(const journal_options& options);

  /// Reads a journal that nobody has open, without taking it: writes nothing and fences nobody.
  /// @returns in_use while an owner holds it; bad_usage when there is no journal; storage_damaged.
  static result<journal_contents> read(const std::string& directory,
                                       const std::shared_ptr<file_system>& files = nullptr);

  ~folder_journal() override;

  const std::map<std::string, std::string>& contents() const override;
  result<void> write(std::span<const journal_write> changes) override;

private:
  class implementation;
  explicit folder_journal(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
