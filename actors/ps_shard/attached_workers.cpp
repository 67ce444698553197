#include "actors/ps_shard/attached_workers.hpp"

namespace dlrun::ps_shard {

attached_workers::answer attached_workers::on_pull(worker_id worker, incarnation speaking,
                                                   const protocol::worker_actor& from) {
  auto& one = workers_[worker];
  if (speaking < one.incarnation) return answer::unanswerable;
  const bool is_new = speaking != one.incarnation;
  if (is_new) one.doorbell = nullptr;
  one.incarnation = speaking;
  one.handle = from;
  one.told = std::nullopt;
  return is_new ? answer::new_start : answer::known_start;
}

bool attached_workers::attach(worker_id worker, incarnation speaking, const bell& one) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.incarnation != speaking) return false;
  found->second.doorbell = one;
  return true;
}

void attached_workers::detach(worker_id worker, const bell& one) {
  if (const auto found = workers_.find(worker); found != workers_.end() && found->second.doorbell == one)
    found->second.doorbell = nullptr;
}

void attached_workers::forget(worker_id worker, incarnation older_than) {
  if (const auto found = workers_.find(worker);
      found != workers_.end() && found->second.incarnation < older_than)
    workers_.erase(found);
}

void attached_workers::tell(worker_id worker, const protocol::shard_state& state) {
  if (const auto found = workers_.find(worker); found != workers_.end()) tell(found->second, state);
}

void attached_workers::tell_all(const protocol::shard_state& state) {
  for (auto& [worker, one] : workers_) tell(one, state);
}

protocol::worker_actor attached_workers::find(worker_id worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? protocol::worker_actor{} : found->second.handle;
}

void attached_workers::tell(attached& worker, const protocol::shard_state& state) {
  if (worker.doorbell && worker.told == state.timeline &&
      worker.doorbell->ring(protocol::bytes_of(protocol::packed(state))))
    return;
  auto whole = state;
  whole.parameters = parameters_;
  send_(worker.handle, whole);
  worker.told = state.timeline;
}

} // namespace dlrun::ps_shard
