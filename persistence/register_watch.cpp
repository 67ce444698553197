#include "persistence/register_watch.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::persistence {

bool register_watch::has_ended(const etcd_owner& seen) const {
  if (!ended_) return false;
  if (is_planted(bug_, planted_bug::trust_folder)) return true;
  return ended_->term == seen.term && ended_->taker == seen.taker;
}

register_watch::verdict register_watch::look(const std::optional<etcd_owner>& seen, bool given_up,
                                             time_point asked, time_point answered) {
  if (!seen || given_up || has_ended(*seen)) return verdict::free;
  if (is_planted(bug_, planted_bug::take_live)) return verdict::free;
  const bool counts_all = is_planted(bug_, planted_bug::count_gaps);
  const auto before = std::exchange(answered_, answered);
  if (last_ != seen || (asked - before > rules_.renewal && !counts_all)) {
    silent_ = {};
    const bool was_written = last_ && last_ != seen;
    last_ = seen;
    return was_written ? verdict::held : verdict::wait;
  }
  silent_ +=
      counts_all ? answered - before : std::min<std::chrono::nanoseconds>(answered - before, rules_.renewal);
  return silent_ >= rules_.expiry ? verdict::free : verdict::wait;
}

} // namespace dlrun::persistence
