/// Decides which worker computes which slots of a step.
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/time.hpp"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::data_dispatcher {

/// A worker that can take slots. `slots_per_second` = measured speed, 0 when not known yet (counts
/// as the mean of the others). What it is at, or its silence, may say that it is slower than that.
struct candidate {
  worker_id worker;
  dlrun::incarnation incarnation;
  double slots_per_second = 0;
  double at_most = std::numeric_limits<double>::infinity(); ///< slots per second
};

/// Who computes what: the assignment's division, until its next decision. `reason` is empty when
/// nothing changed.
struct assignment_decision {
  const std::map<worker_id, protocol::slot_range>& slots;
  std::string reason;
};

/// Divides [0, K) among the candidates in proportion to their speed, with hysteresis: a division is
/// changed only when the set of workers (or an incarnation) changed, or when the predicted step
/// time shrinks by more than `improvement_min`, or at all because somebody is worth half as much
/// again as its share, and four slots: of many workers one alone shortens a step by little. Prefers
/// cuts at borders of large subtrees, so that fewer gradients are pushed. With more workers than
/// slots some idle, and who is slower than an eighth of the others idles too (R34). Pure: same
/// calls, same answers.
class assignment {
public:
  explicit assignment(std::uint32_t slots, double improvement_min = 0.1);

  assignment_decision decide(std::vector<candidate> candidates);

  /// The division in force.
  const std::map<worker_id, protocol::slot_range>& current() const { return current_; }

private:
  double seconds_now(const std::vector<double>& speeds) const;
  bool has_too_little(const std::vector<double>& speeds) const;
  std::string why_members_changed(const std::vector<candidate>& candidates) const;
  void take(const std::vector<candidate>& candidates, const std::vector<std::uint32_t>& cuts);

  std::uint32_t slots_;
  double improvement_min_;
  std::map<worker_id, protocol::slot_range> current_;
  std::vector<std::pair<worker_id, dlrun::incarnation>> incarnations_; ///< of its members, in their order
};

} // namespace dlrun::data_dispatcher
