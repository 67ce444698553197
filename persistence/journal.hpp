/// journal: what the coordinator must not forget.
#pragma once

#include "persistence/file_system.hpp"

#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace dlrun::persistence {

struct journal_options {
  /// Created when missing. Nobody else may write there.
  std::string directory;
  /// Who opens; must be above whoever opened it before.
  incarnation owner;
  /// Null: the operating system's.
  std::shared_ptr<file_system> files;
};

/// One change: the new value of a key, or nullopt to remove it.
struct journal_write {
  std::string key;
  std::optional<std::string> value;
};

/// What a journal holds.
struct journal_contents {
  /// Who opened it last.
  incarnation owner;
  std::map<std::string, std::string> entries;
};

/// A small map from text to bytes, on disk. Every write is atomic and synced when it returns,
/// whatever the job's durability says (PROTOCOL R15). One thread at a time. Calls block for some
/// milliseconds.
///
/// Damage is never passed over: what RocksDB would drop from the end of its log in silence is
/// looked at first. Only a write that was torn in the middle, hence never acknowledged, is dropped;
/// everything else is storage_damaged, naming the file, the offset and the way out.
class journal {
public:
  /// Opens or creates, and writes the owner, synced.
  /// @returns in_use while another live process holds it; fenced when `owner` is not above the last
  /// one; storage_damaged.
  static result<std::unique_ptr<journal>> open(const journal_options& options);

  /// A look without owning: writes nothing and fences nobody. For the time when no owner runs.
  /// @returns in_use while an owner holds it; bad_usage when there is no journal; storage_damaged.
  static result<journal_contents> read(const std::string& directory,
                                       const std::shared_ptr<file_system>& files = nullptr);

  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  ~journal();

  /// Keys and values as of the last write that succeeded.
  const std::map<std::string, std::string>& contents() const;

  /// All changes or none; durable when it returns. After an error it is unknown whether they are.
  /// After disk_full (a later write tries anew, first thing) the caller must try these changes
  /// again before others. After any other error every later write fails until the journal is opened
  /// again by a new owner.
  result<void> write(std::span<const journal_write> changes);

private:
  class implementation;
  explicit journal(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
