#include "actors/ps_shard/norm_exchange.hpp"

#include <bit>
#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

std::uint64_t norm_of(const std::vector<norm_partials>& all) {
  double sum = 0;
  for (const auto& of_shard : all)
    for (const auto bits : of_shard) sum += std::bit_cast<double>(bits);
  return std::bit_cast<std::uint64_t>(std::sqrt(sum));
}

norm_exchange::norm_exchange(ps_shard_id self, std::uint32_t ps_shards, std::uint32_t keep, combiner combine)
    : self_(self)
    , ps_shards_(ps_shards)
    , keep_(keep)
    , combine_(std::move(combine)) {}

void norm_exchange::restart(timeline_id timeline, std::map<step_id, norm_partials> own) {
  timeline_ = timeline;
  own_ = std::move(own);
  measuring_.clear();
  others_.clear();
}

bool norm_exchange::must_measure(step_id step) {
  return couples() && !own_.contains(step) && measuring_.insert(step).second;
}

void norm_exchange::measured(step_id step, norm_partials partials, ps_shard_actions& out) {
  DLRUN_CHECK(measuring_.erase(step) == 1, "the norm of step {} was measured, but not asked for", step);
  own_[step] = std::move(partials);
  for (std::uint32_t shard = 0; shard < ps_shards_; ++shard)
    if (shard != self_.value) send(step, {shard}, out);
}

void norm_exchange::send(step_id step, ps_shard_id to, ps_shard_actions& out) const {
  out.emplace_back(send_norm{to, {timeline_, self_, step, own_.at(step)}});
}

/// What is far ahead is sent again when it is due: what is kept is bounded.
void norm_exchange::heard(const protocol::norm& message, step_id open) {
  if (!couples() || message.timeline != timeline_ || message.from.value >= ps_shards_ ||
      message.from == self_ || message.step < open || message.step.value > open.value + keep_)
    return;
  others_[message.step][message.from] = message.partials;
}

void norm_exchange::asked(const protocol::norm_request& message, ps_shard_actions& out) const {
  if (!couples() || message.timeline != timeline_ || message.from.value >= ps_shards_ ||
      message.from == self_ || !own_.contains(message.step))
    return;
  send(message.step, message.from, out);
}

std::optional<std::uint64_t> norm_exchange::combined(step_id step) const {
  if (!couples()) return 0;
  const auto own = own_.find(step);
  if (own == own_.end()) return std::nullopt;
  const auto others = others_.find(step);
  if ((others == others_.end() ? 0 : others->second.size()) + 1 < ps_shards_) return std::nullopt;
  std::vector<norm_partials> all(ps_shards_);
  all[self_.value] = own->second;
  if (others != others_.end())
    for (const auto& [shard, partials] : others->second) all[shard.value] = partials;
  return combine_(all);
}

const norm_partials& norm_exchange::own(step_id step) const {
  static const norm_partials none;
  const auto at = own_.find(step);
  return at == own_.end() ? none : at->second;
}

void norm_exchange::forget_before(step_id open, bool forget_all) {
  others_.erase(others_.begin(), others_.lower_bound(open));
  const auto kept = forget_all ? 0 : keep_;
  own_.erase(own_.begin(), own_.lower_bound({open.value > kept ? open.value - kept : 0}));
}

void norm_exchange::repeat(step_id open, ps_shard_actions& out) const {
  if (!couples() || !own_.contains(open)) return;
  for (std::uint32_t shard = 0; shard < ps_shards_; ++shard) {
    if (shard == self_.value) continue;
    send(open, {shard}, out);
    const auto others = others_.find(open);
    if (others == others_.end() || !others->second.contains({shard}))
      out.emplace_back(send_norm_request{{shard}, {timeline_, self_, open}});
  }
}

step_id norm_exchange::known_from(step_id open) const {
  if (!couples()) return {0};
  auto step = open;
  while (step.value > 0 && own_.contains({step.value - 1})) --step.value;
  return step;
}

} // namespace dlrun::ps_shard
