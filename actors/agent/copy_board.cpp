#include "actors/agent/copy_board.hpp"

namespace dlrun::agent {

using protocol::role_kind;

/// A start that does not know yet whom the one before counted says nothing of it.
void copy_board::hear(const protocol::heartbeat& beat) {
  const ps_shard_id shard{beat.role.index};
  if (beat.role.kind == role_kind::keeper) keepers_[shard] = {beat.self.incarnation, beat.at};
  if (beat.role.kind != role_kind::ps_shard) return;
  if (beat.copy.keeper.value != 0) words_[shard] = beat.copy;
  if (beat.copy.is_known) counted_[shard] = beat.copy.counted;
}

bool copy_board::is_whole(ps_shard_id shard, keeper_start runs) const {
  const auto found = counted_.find(shard);
  return runs && runs->value != 0 && found != counted_.end() && found->second == *runs;
}

protocol::keeper_place copy_board::answer(ps_shard_id shard, keeper_start runs) const {
  protocol::keeper_place place{.is_known = true, .incarnation = runs.value_or(dlrun::incarnation{})};
  place.counts = is_whole(shard, runs);
  if (const auto found = keepers_.find(shard); found != keepers_.end() && runs == found->second.incarnation)
    place.at = found->second.at;
  return place;
}

bool copy_board::is_to_end(const protocol::heartbeat& beat, keeper_start runs) {
  const ps_shard_id shard{beat.role.index};
  if (beat.role.kind != role_kind::ps_shard || !beat.copy.is_silent || runs != beat.copy.counted)
    return false;
  counted_.erase(shard);
  auto& given_up = given_up_[shard];
  const bool is_news = given_up != *runs;
  given_up = *runs;
  return is_news;
}

const protocol::copy_word* copy_board::word_of(ps_shard_id shard) const {
  const auto found = words_.find(shard);
  return found == words_.end() ? nullptr : &found->second;
}

} // namespace dlrun::agent
