#include "actors/agent/copy_board.hpp"

#include <utility>

namespace dlrun::agent {
namespace {

using protocol::role_kind;

/// Nothing while none runs, or it is to end.
std::optional<dlrun::incarnation> keeper_of(ps_shard_id shard, const managed_roles& roles) {
  const auto found = roles.all().find(protocol::to_string(protocol::keeper_role(shard)));
  if (found == roles.all().end() || !found->second.current || found->second.leaving) return std::nullopt;
  return found->second.current->incarnation;
}

} // namespace

/// A start that does not know yet whom the one before counted says nothing of it.
bool copy_board::hear(const protocol::heartbeat& beat, const managed_roles& roles) {
  const ps_shard_id shard{beat.role.index};
  if (beat.role.kind == role_kind::keeper) keepers_[shard] = {beat.self.incarnation, beat.at};
  if (beat.role.kind != role_kind::ps_shard) return false;
  const auto& said = beat.copy;
  if (!said.is_known) return false;
  said_[shard] = said;
  const auto runs = keeper_of(shard, roles);
  return runs && said.counted == *runs && std::exchange(whole_[shard], *runs) != *runs;
}

bool copy_board::end(const protocol::role_name& keeper, dlrun::incarnation self) {
  if (keeper.kind != role_kind::keeper) return false;
  if (const auto one = given_up_.find({keeper.index}); one != given_up_.end() && one->second != self)
    given_up_.erase(one);
  const auto found = whole_.find({keeper.index});
  if (found == whole_.end() || found->second != self) return false;
  whole_.erase(found);
  return true;
}

std::optional<kept_copy> copy_board::find(ps_shard_id shard, const managed_roles& roles) const {
  const auto runs = keeper_of(shard, roles);
  if (!runs) return std::nullopt;
  const auto said = said_.find(shard);
  return kept_copy{said != said_.end() && said->second.counted == *runs, *runs};
}

copy_facts copy_board::facts_for(const protocol::role_name& role, const managed_roles& roles) const {
  const ps_shard_id shard{role.index};
  if (role.kind == role_kind::ps_shard) return {find(shard, roles), false};
  const auto given_up = given_up_.find(shard);
  return {std::nullopt, role.kind == role_kind::keeper && given_up != given_up_.end() &&
                            given_up->second != keeper_of(shard, roles)};
}

protocol::keeper_place copy_board::answer(const protocol::heartbeat& beat, const managed_roles& roles) const {
  if (beat.role.kind != role_kind::ps_shard || !roles.runs(beat.role, beat.self)) return {};
  protocol::keeper_place place{.is_known = true};
  const ps_shard_id shard{beat.role.index};
  const auto copy = find(shard, roles);
  if (!copy) return place;
  place.incarnation = copy->keeper;
  place.counts = copy->is_whole;
  const auto* shard_role = roles.find(beat.role);
  place.moves = copy->is_whole && shard_role != nullptr && shard_role->is_to_move;
  if (const auto at = keepers_.find(shard); at != keepers_.end() && at->second.incarnation == copy->keeper)
    place.at = at->second.at;
  return place;
}

bool copy_board::is_to_end(const protocol::heartbeat& beat, const managed_roles& roles) {
  const ps_shard_id shard{beat.role.index};
  const auto runs = keeper_of(shard, roles);
  if (beat.role.kind != role_kind::ps_shard || !beat.copy.is_silent || !runs || *runs != beat.copy.counted)
    return false;
  said_[shard].counted = {};
  auto& given_up = given_up_[shard];
  const bool is_news = given_up != *runs;
  given_up = *runs;
  return is_news;
}

std::vector<role_view> copy_board::shown(std::vector<role_view> all, const managed_roles& roles) const {
  for (auto& view : all) {
    if (view.role.kind != role_kind::keeper) continue;
    const auto copy = find({view.role.index}, roles);
    if (!copy) continue;
    if (copy->is_whole) view.state = "whole";
    const auto said = said_.find({view.role.index});
    if (said != said_.end() && said->second.keeper == copy->keeper) view.copy = said->second;
  }
  return all;
}

} // namespace dlrun::agent
