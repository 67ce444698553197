/// What adds up over the starts of a run, for its report: losses, steps done again, time.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "job/report.hpp"
#include "persistence/journal.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::coordinator {

job::recovery to_recovery(const recovery_record& record, protocol::time_point started);

/// Sums over all starts of the coordinator before this one.
struct earlier_starts {
  std::vector<job::recovery> recoveries;
  double wall_seconds = 0; ///< of the starts of the run before the present one
  std::uint64_t slots_computed = 0;
};

/// Kept in the journal beside what the cores need; nothing but the report depends on it, so it is written
/// lazily.
class run_record {
public:
  run_record() = default;
  /// `entries`: of the journal. `started`: of the root process, whose roles may see several coordinators.
  run_record(const std::map<std::string, std::string>& entries, protocol::time_point started,
             incarnation self);

  const earlier_starts& earlier() const { return earlier_; }
  void add_redone(std::uint64_t steps) { redone_ += steps; }
  /// Over all starts, this one too.
  std::uint64_t redone() const { return earlier_redone_ + redone_; }

  /// What is to be written: losses that changed, and the sums every few seconds.
  std::vector<persistence::journal_write> changes(const std::vector<recovery_record>& recoveries,
                                                  std::uint64_t slots_computed, protocol::time_point now);

private:
  protocol::time_point started_{};
  incarnation self_;
  earlier_starts earlier_;
  std::uint64_t earlier_redone_ = 0;
  std::uint64_t redone_ = 0;
  std::vector<std::string> written_; ///< losses of this start, as they are in the journal
  std::uint64_t written_redone_ = 0;
  protocol::time_point summed_{};
};

} // namespace dlrun::coordinator
