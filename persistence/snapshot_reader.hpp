/// snapshot_reader: reads a snapshot file from begin to end.
#pragma once

#include "persistence/file_system.hpp"
#include "persistence/log_record.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::persistence {

/// Reads the payload of a snapshot in order. It verifies every chunk before it gives out a byte of
/// it, and the total at the end. The file stays readable when the store drops it meanwhile. One
/// thread at a time.
class snapshot_reader {
public:
  /// Verifies header, trailer and metadata. @returns storage_damaged naming file and offset,
  /// system.
  static result<snapshot_reader> open(const std::shared_ptr<file_system>& files, const std::string& path);

  snapshot_reader(snapshot_reader&& other) noexcept;
  snapshot_reader& operator=(snapshot_reader&& other) noexcept;
  ~snapshot_reader();

  const snapshot_info& info() const;
  /// The metadata that commit() was given.
  std::span<const std::byte> metadata() const;

  /// Fills `bytes` with what comes next. @returns how many, less than asked only at the end of the
  /// payload, when the total was right too; storage_damaged naming file and offset.
  result<std::size_t> read(std::span<std::byte> bytes);

private:
  struct state;
  explicit snapshot_reader(std::unique_ptr<state> state);

  std::unique_ptr<state> state_;
};

} // namespace dlrun::persistence
