#include "actors/data_dispatcher/evaluation_book.hpp"

#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {

evaluation_book::evaluation_book(evaluation_rules rules)
    : rules_(std::move(rules))
    , last_{rules_.steps} {
  if (rules_.stopping) rules_.ahead_max = 0;
  DLRUN_CHECK(rules_.versions.empty() || rules_.versions.rbegin()->value <= rules_.steps,
              "version {} is to be evaluated of a job of {} steps", *rules_.versions.rbegin(), rules_.steps);
  find_pending();
}

void evaluation_book::set_results(const std::vector<protocol::evaluated>& results) {
  done_.clear();
  for (const auto& one : results) done_.insert(one.version);
  last_ = stops_at(results);
  find_pending();
  best_up_to_.clear();
  if (!rules_.best) return;
  std::optional<double> best;
  std::optional<version_id> best_version;
  for (const auto& one : results) {
    if (const auto value = rules_.best->value(one); rules_.best->is_better(value, best)) {
      best = value;
      best_version = one.version;
    }
    if (best_version) best_up_to_[one.version] = *best_version;
  }
}

/// Result by result: what comes later changes nothing of what was decided.
version_id evaluation_book::stops_at(const std::vector<protocol::evaluated>& results) const {
  if (!rules_.stopping) return {rules_.steps};
  const auto& rule = *rules_.stopping;
  std::optional<double> best;
  std::uint64_t without = 0;
  for (const auto& one : results) {
    const auto value = rule.metric.value(one);
    if (rule.metric.is_better(value, best, rule.min_delta)) {
      best = value;
      without = 0;
    } else if (++without >= rule.patience) {
      return one.version;
    }
  }
  return {rules_.steps};
}

void evaluation_book::give_up(version_id version) {
  given_up_.insert(version);
  find_pending();
}

void evaluation_book::restart() {
  given_up_.clear();
  find_pending();
}

void evaluation_book::find_pending() {
  pending_.clear();
  for (const auto version : rules_.versions)
    if (version <= last_ && !done_.contains(version) && !given_up_.contains(version))
      pending_.push_back(version);
}

version_id evaluation_book::limit() const {
  return pending_.size() > rules_.ahead_max ? pending_[rules_.ahead_max] : last_;
}

std::optional<version_id> evaluation_book::best_below(version_id floor) const {
  const auto at_or_above = best_up_to_.lower_bound(floor);
  if (at_or_above == best_up_to_.begin()) return std::nullopt;
  return std::prev(at_or_above)->second;
}

} // namespace dlrun::data_dispatcher
