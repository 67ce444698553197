/// How the job ends, from the first reason to the last role.
#pragma once

#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <utility>

namespace dlrun::agent {

/// Pure: keeps why the job ends, and how far it is on its way: first the coordinator writes the
/// report, then the roles stop.
class job_end {
public:
  /// @param report_patience how long the coordinator gets to write the report
  explicit job_end(protocol::duration report_patience)
      : report_patience_(report_patience) {}

  /// The job is to end, for that reason if it is the first. @returns false if there was one
  bool begin(const protocol::job_ended& how) {
    if (how_) return false;
    how_ = how;
    return true;
  }
  /// The coordinator was asked for the report.
  void await_report(protocol::time_point now) { report_due_ = now + report_patience_; }
  bool awaits_report() const { return report_due_.has_value(); }
  /// It has not said in time that it is done.
  bool is_report_late(protocol::time_point now) const { return report_due_ && now >= *report_due_; }
  /// The coordinator says so. What is complete in the journal is complete, also for who asked to
  /// stop meanwhile (R38).
  void hear(const protocol::job_ended& said) {
    if (!how_ || said.outcome == protocol::job_outcome::completed) how_ = said;
  }
  /// The roles stop from now on. @returns false if they did already
  bool stop_roles() {
    report_due_.reset();
    return !std::exchange(is_stopping_, true);
  }
  /// All roles are gone. @param unless_known the reason if there was none before  @returns how the
  /// job has ended
  const protocol::job_ended& conclude(const protocol::job_ended& unless_known) {
    begin(unless_known);
    return *how_;
  }

  bool is_begun() const { return how_.has_value(); }
  /// The roles stop, or are gone.
  bool is_stopping() const { return is_stopping_; }

private:
  protocol::duration report_patience_;
  std::optional<protocol::job_ended> how_;
  std::optional<protocol::time_point> report_due_; ///< while the coordinator writes it
  bool is_stopping_ = false;
};

} // namespace dlrun::agent
