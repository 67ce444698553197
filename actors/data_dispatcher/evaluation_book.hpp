/// What is evaluated and what follows from the results: how far training may go on before more of
/// them are there, where it ends, and which version is the best (rules R13, R17, R19).
#pragma once

#include "actors/protocol/watched_metric.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::data_dispatcher {

/// Training ends at the evaluation with which `patience` of them in a row have brought nothing that
/// is better than the best before by more than `min_delta`.
struct stopping_rule {
  protocol::watched_metric metric;
  std::uint64_t patience = 1;
  double min_delta = 0;
};

struct evaluation_rules {
  std::uint64_t steps = 0; ///< N
  /// Versions to evaluate, N among them if it is.
  std::set<version_id> versions{};
  /// So many that are not evaluated yet training may leave behind; none when it may be stopped
  /// early, since it must end at the same version in every run. Larger: training waits less often
  /// for a slow evaluation; each costs the disk of a snapshot.
  std::uint64_t ahead_max = 2;
  std::optional<stopping_rule> stopping{};
  std::optional<protocol::watched_metric> best{}; ///< the version that is kept, by this
};

/// Pure: all answers are a function of the rules, the results and what was given up.
class evaluation_book {
public:
  explicit evaluation_book(evaluation_rules rules);

  /// The results that count now, ascending by version: those that are journaled, and not void.
  void set_results(const std::vector<protocol::evaluated>& results);
  /// A version that can be evaluated no more.
  void give_up(version_id version);
  /// A new timeline: what was given up may be there again.
  void restart();

  /// The last version of the job: N, or the evaluation that stopped it.
  version_id last() const { return last_; }
  /// To be evaluated still, ascending.
  const std::vector<version_id>& pending() const { return pending_; }
  /// No shard needs to make a version above this yet.
  version_id limit() const;
  /// The best of those below `floor`; nothing when none is kept.
  std::optional<version_id> best_below(version_id floor) const;

private:
  void find_pending();
  version_id stops_at(const std::vector<protocol::evaluated>& results) const;

  evaluation_rules rules_;
  std::set<version_id> done_;
  std::set<version_id> given_up_;
  version_id last_;
  std::vector<version_id> pending_;
  std::map<version_id, version_id> best_up_to_; ///< of each result: the best of it and those below
};

} // namespace dlrun::data_dispatcher
