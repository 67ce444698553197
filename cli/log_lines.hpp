/// The logs of a run's roles as one stream, in the order in which the lines were written.
#pragma once

#include "cli/hosted_logs.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// What stands in front of a line's text (actors/common/role_log.hpp).
struct log_head {
  std::string time;  ///< "2026-11-22T02:40:11.123", local time of the host
  std::string level; ///< as spdlog names it: debug, info, warning, error, critical
  std::string role;  ///< "ps_shard"
  std::uint32_t index = 0;
  std::uint64_t incarnation = 0;
  std::string host; ///< where the role wrote it; "" for the host of the run folder
};

struct log_line {
  log_head head; ///< of a line without one (a stack trace, what a library prints): that of the line before it
  std::string event; ///< stable name of what happened; "" when the line has none
  std::string text;  ///< behind the event
  std::string whole; ///< as it stands in the file, of one in JSON as it would in text; of another host
                     ///< `role-index@host`
};

/// A line of either form of observability.log_format, of a role on `host`. @returns nothing for a
/// line without a head.
std::optional<log_line> parse_log_line(std::string_view line, const std::string& host = "");

/// `{"time","level","role","index","incarnation","host","event","text"}`, no newline; `host` only
/// of another one than the run folder's.
std::string to_json(const log_line& line);

/// Which lines are wanted.
struct log_filter {
  std::string role;  ///< "worker", "worker-1"; "" for all
  std::string level; ///< this one and worse; "" for all
  bool wants(const log_line& line) const;
  bool wants(std::string_view role_kind, std::uint32_t index) const;
};
/// @returns bad_usage naming what may stand there.
result<void> check(const log_filter& filter);

/// All logs of a run, those in its folder and those of other hosts, merged by time. Logs that
/// appear later are found. Not thread-safe.
class log_merger {
public:
  /// @param hosts other hosts of the run
  log_merger(std::filesystem::path run_dir, log_filter filter, std::vector<hosted_folder> hosts = {},
             root_asker ask = {});

  /// From now on what stands behind the last newline of a log is a line too: nobody waits for more.
  void take_rests() { takes_rests_ = true; }
  /// The oldest line that was not given yet; nothing when all that is written was given.
  std::optional<log_line> next();
  /// What cannot be given, for people (hosted_logs::missing).
  std::vector<std::string> missing(bool is_over);

private:
  struct source {
    std::string name; ///< role and host, of which there is one log
    std::function<std::optional<std::string>()> next_line;
    std::function<std::optional<std::string>()> rest; ///< what stands behind the last newline
    log_head last;                                    ///< of the newest line that had one
    std::optional<log_line> head;                     ///< read, not given yet
  };
  void find_files();
  void find_hosted();
  std::optional<log_line> read(source& from) const;

  std::filesystem::path run_dir_;
  log_filter filter_;
  hosted_logs hosted_;
  std::vector<source> sources_; ///< by name
  bool takes_rests_ = false;
};

} // namespace dlrun::cli
