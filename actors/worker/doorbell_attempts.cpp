#include "actors/worker/doorbell_attempts.hpp"

namespace dlrun::worker {

bool doorbell_attempts::follow(ps_shard_id shard, incarnation start) {
  auto& one = all_[shard];
  if (start > one.start) one = {.start = start};
  return start == one.start;
}

bool doorbell_attempts::begin(ps_shard_id shard, protocol::time_point now) {
  auto& one = all_[shard];
  if (one.is != state::none || now < one.again) return false;
  one.is = state::connecting;
  return true;
}

void doorbell_attempts::on_connected(ps_shard_id shard, incarnation start, protocol::time_point now) {
  end(shard, start, state::connected, now + pause);
}

void doorbell_attempts::on_failed(ps_shard_id shard, incarnation start, protocol::time_point now) {
  end(shard, start, state::none, now + pause);
}

void doorbell_attempts::on_lost(ps_shard_id shard, incarnation start) {
  end(shard, start, state::none, all_[shard].again);
}

void doorbell_attempts::end(ps_shard_id shard, incarnation start, state as, protocol::time_point again) {
  auto& one = all_[shard];
  if (one.start == start) one = {start, as, again};
}

} // namespace dlrun::worker
