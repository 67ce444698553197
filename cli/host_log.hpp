/// A log of a role on another host than the run folder's.
#pragma once

#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::cli {

/// Asks the root of the run. @returns its answer; an error when none came.
using root_asker = std::function<result<std::string>(const std::string& request)>;

/// Reads such a log line by line, as far as it is written, and goes on later where it stopped: asks
/// the root for it, a part at a time, and where that does not have it any more reads the copy in
/// the run folder, which the root makes at the end. Not thread-safe.
class host_log {
public:
  /// @param copy where the copy is, or will be
  host_log(std::string host, const protocol::role_name& role, std::filesystem::path copy, root_asker ask);

  const std::string& host() const { return host_; }
  const protocol::role_name& role() const { return role_; }
  /// The host has so many bytes of it now.
  void reached(std::uint64_t bytes);
  /// The host cannot be asked: the copy is what there is.
  void lost() { available_.reset(); }
  bool is_copied() const;

  /// The next line without its newline; nothing while the log ends, or has only part of a line. One
  /// that is too long comes in pieces.
  std::optional<std::string> next();
  /// What stands behind the last newline: a line in the making, or one that was torn.
  std::optional<std::string> rest();

private:
  std::optional<std::string> take_line();
  std::string more();
  std::optional<std::string> ask_for_part();
  std::string read_copy();

  std::string host_;
  protocol::role_name role_;
  std::filesystem::path copy_;
  root_asker ask_;
  std::optional<std::uint64_t> available_; ///< nothing: it cannot be asked for
  std::uint64_t offset_ = 0;               ///< of the next bytes
  std::string part_;                       ///< of lines that were not given yet
};

} // namespace dlrun::cli
