/// journal: the durable map of facts that a coordinator must not forget.
#pragma once

#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace dlrun::persistence {

/// One change: the new value of a key, or nullopt to remove it.
struct journal_write {
  std::string key;
  std::optional<std::string> value;

  bool operator==(const journal_write&) const = default;
};

/// What a journal holds.
struct journal_contents {
  /// Incarnation of the coordinator that took the journal last.
  incarnation owner;
  std::map<std::string, std::string> entries;
};

/// A small map from text to bytes with one owner, whose term is its incarnation. Opening a journal
/// takes the term, by compare and set against the last one, and then reads (R28). Every write is
/// atomic, compares the term, and is durable when it returns, whatever the job's durability says
/// (R15). One thread at a time. Calls block.
class journal {
public:
  journal() = default;
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  virtual ~journal() = default;

  /// Keys and values as of the last write that succeeded.
  virtual const std::map<std::string, std::string>& contents() const = 0;

  /// Writes all changes or none; durable when it returns. After an error it is unknown whether they
  /// are there. After disk_full the caller must write these changes again before others. After any
  /// other error every later write fails until a new owner takes the journal; `fenced` says that
  /// one has.
  virtual result<void> write(std::span<const journal_write> changes) = 0;
};

/// Applies `changes` to `entries`.
void apply(std::span<const journal_write> changes, std::map<std::string, std::string>& entries);

} // namespace dlrun::persistence
