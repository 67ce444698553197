#include "actors/agent/copy_board.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::agent {
namespace {

using protocol::role_kind;
using protocol::role_name;

/// Nothing while none runs, or it is to end.
std::optional<dlrun::incarnation> start_of(const role_name& keeper, const managed_roles& roles) {
  const auto* found = roles.find(keeper);
  if (found == nullptr || !found->current || found->leaving) return std::nullopt;
  return found->current->incarnation;
}

/// Of the copies of that PS shard's store, whether they run or not.
std::vector<role_name> keepers_of(ps_shard_id shard, const managed_roles& roles) {
  std::vector<role_name> all;
  for (std::uint32_t copy = 0; roles.find(protocol::keeper_role(shard, copy)) != nullptr; ++copy)
    all.push_back(protocol::keeper_role(shard, copy));
  return all;
}

} // namespace

/// A start that does not know yet whom the one before counted says nothing of it.
std::vector<role_name> copy_board::hear(const protocol::heartbeat& beat, const managed_roles& roles) {
  std::vector<role_name> news;
  if (beat.role.kind == role_kind::keeper) keepers_[beat.role] = {beat.self.incarnation, beat.at};
  if (beat.role.kind != role_kind::ps_shard) return news;
  for (std::uint32_t copy = 0; copy < beat.copies.all.size(); ++copy) {
    const auto& said = beat.copies.all[copy];
    if (!said.is_known) continue;
    const auto keeper = protocol::keeper_role({beat.role.index}, copy);
    said_[keeper] = said;
    const auto runs = start_of(keeper, roles);
    if (runs && said.counted == *runs && std::exchange(whole_[keeper], *runs) != *runs)
      news.push_back(keeper);
  }
  return news;
}

bool copy_board::end(const role_name& keeper, dlrun::incarnation self) {
  if (keeper.kind != role_kind::keeper) return false;
  if (const auto one = given_up_.find(keeper); one != given_up_.end() && one->second != self)
    given_up_.erase(one);
  const auto found = whole_.find(keeper);
  if (found == whole_.end() || found->second != self) return false;
  whole_.erase(found);
  return true;
}

std::optional<kept_copy> copy_board::find(const role_name& keeper, const managed_roles& roles) const {
  const auto runs = start_of(keeper, roles);
  if (!runs) return std::nullopt;
  const auto said = said_.find(keeper);
  return kept_copy{said != said_.end() && said->second.counted == *runs, *runs};
}

copy_facts copy_board::facts_for(const role_name& role, const managed_roles& roles) const {
  copy_facts facts;
  const auto* starts = roles.find(role);
  facts.moves = starts != nullptr && starts->has_moved;
  if (role.kind == role_kind::ps_shard)
    for (const auto& keeper : keepers_of({role.index}, roles))
      if (const auto copy = find(keeper, roles); copy && copy->is_whole) facts.whole.push_back(keeper);
  const auto given_up = given_up_.find(role);
  facts.is_given_up = given_up != given_up_.end() && given_up->second != start_of(role, roles);
  return facts;
}

protocol::keeper_places copy_board::answer(const protocol::heartbeat& beat,
                                           const managed_roles& roles) const {
  if (beat.role.kind != role_kind::ps_shard || !roles.runs(beat.role, beat.self)) return {};
  protocol::keeper_places places{.is_known = true};
  for (const auto& keeper : keepers_of({beat.role.index}, roles))
    places.all.push_back(place_of(keeper, roles));
  const bool has_whole = std::ranges::any_of(places.all, &protocol::keeper_place::counts);
  const auto* shard = roles.find(beat.role);
  places.moves = has_whole && shard != nullptr && shard->is_to_move;
  return places;
}

protocol::keeper_place copy_board::place_of(const role_name& keeper, const managed_roles& roles) const {
  const auto copy = find(keeper, roles);
  if (!copy) return {};
  protocol::keeper_place place{.incarnation = copy->keeper, .counts = copy->is_whole};
  if (const auto at = keepers_.find(keeper); at != keepers_.end() && at->second.incarnation == copy->keeper)
    place.at = at->second.at;
  return place;
}

std::vector<role_name> copy_board::to_end(const protocol::heartbeat& beat, const managed_roles& roles) {
  std::vector<role_name> all;
  if (beat.role.kind != role_kind::ps_shard) return all;
  for (std::uint32_t copy = 0; copy < beat.copies.all.size(); ++copy) {
    const auto& said = beat.copies.all[copy];
    const auto keeper = protocol::keeper_role({beat.role.index}, copy);
    const auto runs = start_of(keeper, roles);
    if (!said.is_silent || !runs || *runs != said.counted) continue;
    said_[keeper].counted = {};
    if (std::exchange(given_up_[keeper], *runs) != *runs) all.push_back(keeper);
  }
  return all;
}

std::vector<role_view> copy_board::shown(std::vector<role_view> all, const managed_roles& roles) const {
  for (auto& view : all) {
    if (view.role.kind != role_kind::keeper) continue;
    const auto copy = find(view.role, roles);
    if (!copy) continue;
    if (copy->is_whole) view.state = "whole";
    const auto said = said_.find(view.role);
    if (said != said_.end() && said->second.keeper == copy->keeper) view.copy = said->second;
  }
  return all;
}

} // namespace dlrun::agent
