#include "actors/coordinator/store_book.hpp"

#include <fmt/format.h>

namespace dlrun::coordinator {
namespace {

/// A kill loses at most so much of what could be told of a copy that was made and put back under
/// one start. The coordinator writes its sums as often.
constexpr auto growth_period = std::chrono::seconds(1);

/// Since the write of `before` it is another store, or was opened, went back or was found short.
bool is_another(const known_store& now, const known_store& before) {
  return now.store.identity != before.store.identity || now.store.host != before.store.host ||
         now.opener != before.opener || now.timeline != before.timeline || now.losses != before.losses;
}

std::string reason_of(const protocol::opened_store& found, const known_store& known) {
  if (found.store.identity == known.store.identity) return "it is an older copy of itself";
  if (found.store.host != known.store.host) return "that of another host is used";
  return found.why_new.empty() ? "it is another one" : found.why_new;
}

void take(const protocol::opened_store& found, incarnation opener, known_store& known) {
  known.store = found.store;
  known.opener = opener;
  known.timeline = found.timeline;
  known.restorable = {{{0}, {0}}};
  insert(known.restorable, {found.newest, found.newest});
}

} // namespace

version_id newest_of(const known_store& known) {
  return known.restorable.empty() ? version_id{0} : known.restorable.back().last;
}

std::string describe(const store_loss& loss) {
  const auto name = [](const protocol::store_standing& store) {
    return fmt::format("{:08x} on {}", store.identity >> 32, store.host);
  };
  return fmt::format(
      "ps_shard {} comes back with less than its store had acknowledged: store {} had versions "
      "up to {}, store {} has them up to {}: {}",
      loss.shard, name(loss.before), loss.acknowledged, name(loss.now), loss.found, loss.reason);
}

store_book::verdict store_book::on_joined(const protocol::join& join) {
  const auto& found = join.opened;
  if (join.role.kind != protocol::role_kind::ps_shard || found.store.identity == 0) return {};
  const auto [at, is_first] = known_.try_emplace(ps_shard_id{join.role.index});
  auto& known = at->second;
  if (is_first) take(found, join.self.incarnation, known);
  // Of an older start, which a coordinator that has just started may let in, the store says no
  // more.
  if (join.self.incarnation <= known.opener) return {};
  auto said = judge(join, known);
  if (!said.is_short) take(found, join.self.incarnation, known);
  if (!said.news) return said;
  if (known.losses.size() == losses_max) known.losses.erase(known.losses.begin());
  known.losses.push_back(*said.news);
  return said;
}

/// What it lacks shows on its own timeline only: on a later one it has gone back meanwhile. But
/// whoever was opened by an earlier start than the newest that joined is a copy from before that.
store_book::verdict store_book::judge(const protocol::join& join, known_store& known) const {
  const auto& found = join.opened;
  const bool lacks = found.timeline < known.timeline ||
                     (found.timeline == known.timeline && found.newest < newest_of(known));
  const bool is_same = found.store.identity == known.store.identity;
  const bool is_older = is_same && found.opener < known.opener;
  if ((!lacks && !is_older) || is_planted(bug_, protocol::planted_bug::trust_old)) return {};
  const store_loss loss{{join.role.index}, join.self.incarnation,  known.store, found.store, newest_of(known),
                        found.newest,      reason_of(found, known)};
  const bool is_told = !known.losses.empty() && known.losses.back().start == loss.start;
  return {is_same, is_told ? std::nullopt : std::optional(loss)};
}

/// Until one that was short says another identity, what is known stays: the next start would be
/// held against it if this one ended before.
void store_book::on_status(const protocol::shard_status& status) {
  const auto found = known_.find(status.shard);
  if (found == known_.end() || status.store.identity == 0) return;
  auto& known = found->second;
  const bool was_short = !known.losses.empty() && known.losses.back().start == status.self.incarnation &&
                         known.opener < status.self.incarnation;
  if (was_short ? status.store.identity == known.store.identity : known.opener != status.self.incarnation)
    return;
  known.store = status.store;
  known.opener = status.self.incarnation;
  known.timeline = status.timeline;
  known.restorable = status.durable.restorable;
}

std::vector<std::pair<ps_shard_id, known_store>>
store_book::to_journal(std::optional<protocol::time_point> now) {
  std::vector<std::pair<ps_shard_id, known_store>> changed;
  const bool is_time = !now || *now - written_ >= growth_period;
  for (const auto& [shard, known] : known_) {
    const auto before = journaled_.find(shard);
    const bool is_new = before == journaled_.end() || is_another(known, before->second);
    if (!is_new && (!is_time || known == before->second)) continue;
    journaled_[shard] = known;
    changed.emplace_back(shard, known);
  }
  if (is_time && now) written_ = *now;
  return changed;
}

std::vector<store_loss> store_book::losses() const {
  std::vector<store_loss> all;
  for (const auto& [shard, known] : known_) all.insert(all.end(), known.losses.begin(), known.losses.end());
  return all;
}

} // namespace dlrun::coordinator
