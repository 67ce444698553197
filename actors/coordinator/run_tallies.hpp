/// What adds up over the starts of a run, for its report: losses, steps done again, time.
#pragma once

#include "actors/coordinator/recovery_book.hpp"
#include "actors/protocol/local_messages.hpp"
#include "persistence/journal.hpp"
#include <dlrun/report.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace dlrun::coordinator {

dlrun::recovery to_recovery(const recovery_record& record, protocol::time_point started);

/// What the starts of the coordinator before this one noted.
struct earlier_starts {
  std::vector<dlrun::recovery> recoveries;
  std::set<std::tuple<std::string, std::uint32_t, std::uint64_t>>
      losses;              ///< of `recoveries`: role, index, incarnation that ended
  double wall_seconds = 0; ///< of the starts of the run before the present one
};

/// Sums over all starts of all roles.
struct run_totals {
  std::uint64_t slots_computed = 0; ///< 0 = not known
  std::uint64_t bytes_logged = 0, bytes_snapshotted = 0, bytes_copied = 0;
  std::uint64_t copy_waited_us = 0; ///< of the PS shard that waited longest
};

/// Kept in the journal beside what the cores need; nothing but the report depends on it, so it is
/// written lazily.
class run_tallies {
public:
  run_tallies() = default;
  /// `entries`: of the journal. `started`: of the root process, by the clock of this host. `root`:
  /// the number of that process, by which its coordinators are told from those of other roots,
  /// whatever clocks their hosts have; 0: `started` tells them.
  run_tallies(const std::map<std::string, std::string>& entries, protocol::time_point started,
              incarnation self, std::uint64_t root = 0);

  const earlier_starts& earlier() const { return earlier_; }
  /// Whether a start before this one noted that loss.
  bool knows(const protocol::role_exited& loss) const;
  /// Of all starts, this one too, in the order of timelines.
  std::vector<dlrun::rewind> rewinds() const;
  /// The same, in the order of their times.
  std::vector<dlrun::journal_loss> journal_losses() const;
  run_totals totals() const;

  void add_rewind(const protocol::timeline_started& what, protocol::time_point now);
  /// R41: the journal does not know that start of a role, and has issued up to `known` for it.
  /// @returns what is to be written of it, in the write that says so
  persistence::journal_write add_journal_loss(const protocol::role_name& role, incarnation start,
                                              incarnation known, protocol::time_point now);
  /// What a start says of itself; the latest word of each start counts.
  void add_tallies(const std::vector<protocol::start_tally>& tallies);

  /// What is to be written: losses and rewinds that changed, and the rest every second.
  std::vector<persistence::journal_write> changes(const std::vector<recovery_record>& recoveries,
                                                  protocol::time_point now);
  /// The same at the end: none of it waits for its second.
  std::vector<persistence::journal_write> last_changes(const std::vector<recovery_record>& recoveries,
                                                       protocol::time_point now);

private:
  using start = std::pair<protocol::role_name, incarnation>;

  protocol::time_point started_{};
  incarnation self_;
  std::uint64_t root_ = 0;
  earlier_starts earlier_;
  std::vector<std::string> written_;               ///< losses of this start, as they are in the journal
  std::map<std::uint64_t, dlrun::rewind> rewinds_; ///< by timeline
  std::set<std::uint64_t> unwritten_rewinds_;
  std::map<incarnation, dlrun::journal_loss> journal_losses_; ///< by the coordinator that noticed it
  std::map<start, protocol::start_tally> tallies_;
  std::set<start> unwritten_tallies_;
  std::optional<protocol::time_point> summed_;
};

} // namespace dlrun::coordinator
