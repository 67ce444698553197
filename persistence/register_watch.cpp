#include "persistence/register_watch.hpp"

namespace dlrun::persistence {

bool register_watch::has_ended(const etcd_owner& seen) const {
  if (!ended_) return false;
  if (is_planted(bug_, planted_bug::trust_folder)) return true;
  return ended_->term == seen.term && ended_->taker == seen.taker;
}

register_watch::verdict register_watch::look(const std::optional<etcd_owner>& seen, bool given_up,
                                             time_point now) {
  if (!seen || given_up || has_ended(*seen)) return verdict::free;
  if (is_planted(bug_, planted_bug::take_live)) return verdict::free;
  if (first_ && *first_ != *seen) return verdict::held;
  if (!first_) since_ = now;
  first_ = seen;
  return now - since_ >= rules_.expiry ? verdict::free : verdict::wait;
}

} // namespace dlrun::persistence
