#include "actors/ps_shard/worker_starts.hpp"

#include <algorithm>

namespace dlrun::ps_shard {

void worker_starts::learn(const protocol::directory& directory) {
  named_.clear();
  for (const auto& entry : directory.entries) {
    if (entry.role.kind != protocol::role_kind::worker) continue;
    const worker_id worker{entry.role.index};
    named_[worker] = {entry.incarnation, entry.token};
    auto& newest = newest_[worker];
    newest = std::max(newest, entry.incarnation);
  }
}

bool worker_starts::speaks_for_itself(worker_id worker, const protocol::fence& claimed) const {
  const auto named = named_.find(worker);
  return named == named_.end() || named->second.incarnation != claimed.incarnation ||
         named->second.token == claimed.token;
}

bool worker_starts::knows_newer(worker_id worker, incarnation speaking) const {
  const auto newest = newest_.find(worker);
  return newest != newest_.end() && newest->second > speaking;
}

std::optional<incarnation> worker_starts::refuse(worker_id worker, incarnation speaking) {
  auto& newest = newest_[worker];
  if (speaking < newest) return newest;
  newest = speaking;
  return std::nullopt;
}

bool worker_starts::note_contribution(const protocol::push& push) {
  auto& noted = contributions_[push.worker];
  if (push.self.incarnation <= noted.incarnation) return false;
  noted = {push.worker, push.self.incarnation, push.step};
  return true;
}

std::vector<protocol::first_contribution> worker_starts::contributions() const {
  std::vector<protocol::first_contribution> all;
  for (const auto& [worker, noted] : contributions_) all.push_back(noted);
  return all;
}

} // namespace dlrun::ps_shard
