/// The logs of a run's roles on other hosts than the run folder's.
#pragma once

#include "cli/host_log.hpp"
#include "cli/line_tail.hpp"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace dlrun::cli {

/// A host of the run, and its folder there.
struct hosted_folder {
  std::string host;
  std::string folder;
};

/// Finds them: those that hosts of the running job have, as the root tells, and those that were
/// copied into the run folder when it ended. Knows which are not to be had. Not thread-safe.
class hosted_logs {
public:
  hosted_logs(std::filesystem::path run_dir, std::vector<hosted_folder> hosts, root_asker ask);

  /// Looks again. @returns those that are new.
  std::vector<std::shared_ptr<host_log>> look();
  /// The hosts whose logs are not to be had, or not all of them, each with the roles that were
  /// there, the reason and the place, for people: those that were not told before. While the run
  /// may still end (`is_over` false) only those that are away.
  /// @param wanted of which roles logs are of interest
  std::vector<std::string> missing(bool is_over,
                                   const std::function<bool(const protocol::role_name&)>& wanted);

private:
  /// How far a host can be asked.
  enum class reach : std::uint8_t { unknown, there, away, over };
  struct known_host {
    hosted_folder at;
    reach now = reach::unknown;
    std::string away_since{};               ///< why it is away
    std::string stays{};                    ///< why its logs were not copied when the job ended
    std::set<protocol::role_name> placed{}; ///< that ran there at any time
    std::string told{};                     ///< the reason that was told
    std::map<protocol::role_name, std::shared_ptr<host_log>> logs{};
  };
  using found_logs = std::vector<std::shared_ptr<host_log>>;

  void read_events();
  bool ask_for_listing(known_host& one, found_logs& found);
  void take_listing(known_host& one, std::string_view listing, found_logs& found);
  void find_copies(known_host& one, found_logs& found);
  host_log& log_of(known_host& one, const protocol::role_name& role, found_logs& found);
  std::string why_missing(const known_host& one, const protocol::role_name& role, bool is_over) const;

  std::filesystem::path run_dir_;
  root_asker ask_;
  line_tail events_;
  std::map<std::string, known_host> hosts_; ///< by name
};

} // namespace dlrun::cli
