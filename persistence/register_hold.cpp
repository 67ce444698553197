#include "persistence/register_hold.hpp"

#include <algorithm>

namespace dlrun::persistence {

register_hold::attempt register_hold::next(bool has_changes) {
  if (!has_changes && renewal_) return {self_, *renewal_};
  auto after = self_;
  after.write = ++last_;
  unanswered_.push_back(after);
  if (!has_changes) renewal_ = after;
  return {self_, after};
}

register_hold::outcome register_hold::settle(const etcd_owner& done, outcome what) {
  self_ = etcd_owner{done};
  unanswered_.clear();
  renewal_.reset();
  return what;
}

register_hold::outcome register_hold::on_answer(const attempt& sent, const std::optional<etcd_owner>& found) {
  if (!found || *found == sent.after) return settle(sent.after, outcome::done);
  if (is_planted(bug_, planted_bug::follow_register)) return settle(*found, outcome::again);
  const bool is_own = std::ranges::find(unanswered_, *found) != unanswered_.end();
  if (is_own && !is_planted(bug_, planted_bug::forget_attempts)) return settle(*found, outcome::again);
  return outcome::lost;
}

} // namespace dlrun::persistence
