/// The logs of roles as files: in the folder of the host where they are written, and as copies in
/// the run folder.
#pragma once

#include "actors/protocol/log_messages.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>
#include <string_view>

namespace dlrun::agent {

/// "worker-1.log" -> worker 1; nothing for other files.
std::optional<protocol::role_name> role_of_log(const std::filesystem::path& file);

/// The logs in `folder`/logs, by role. Other files there are passed over. @returns bad_usage when
/// it cannot be read, limit_exceeded when a message has no room for so many.
result<std::vector<protocol::kept_log>> list_logs(const std::filesystem::path& folder);

/// The bytes that are wanted of a log in `folder`/logs, as far as it goes: none from its end on.
/// @returns limit_exceeded for more than a part; system when it is not there or is no file.
result<std::string> read_log_part(const std::filesystem::path& folder,
                                  const protocol::log_part_wanted& wanted);

/// Where in the run folder the copies from another host are.
std::filesystem::path copied_logs(const std::filesystem::path& run_dir, const std::string& host);

/// Of each log so many bytes are copied at most, the newest.
inline constexpr std::uint64_t copied_log_bytes_max = std::uint64_t{16} << 20;

/// First line of a copy without its beginning, with its newline; and what it says: how many bytes
/// of the log are left out. Nothing for any other line.
std::string left_out_line(std::uint64_t bytes, const std::string& log);
std::optional<std::uint64_t> left_out_bytes(std::string_view line);

/// A copy that comes in parts, in any order. Until it is whole it is beside its place, as
/// NAME.part. Blocks on the disk.
class log_intake {
public:
  /// @param from where the log itself is, for people. @returns system, disk_full.
  static result<log_intake> begin(const std::filesystem::path& copies, const protocol::kept_log& log,
                                  const std::string& from);

  /// What is to be asked for next; nothing when all has been.
  std::optional<protocol::log_part_wanted> next();
  /// The answer. @returns protocol for other bytes than were wanted; system, disk_full.
  result<void> add(const protocol::log_part_wanted& wanted, std::string_view bytes);
  bool is_whole() const { return missing_ == 0; }
  /// Puts it in its place. @returns system.
  result<void> finish() const;
  /// Removes what has come.
  void discard() const;

private:
  log_intake(std::filesystem::path place, const protocol::kept_log& log);
  std::filesystem::path part() const { return place_.string() + ".part"; }
  result<void> write(std::uint64_t at, std::string_view bytes) const;

  std::filesystem::path place_;
  protocol::kept_log log_;
  std::uint64_t left_out_;       ///< bytes at the beginning of the log
  std::uint64_t next_;           ///< where in the log the next part begins
  std::uint64_t missing_;        ///< bytes that have not come
  std::uint64_t line_bytes_ = 0; ///< of the line in front of them
};

} // namespace dlrun::agent
