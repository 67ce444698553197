/// Quantities that couple all shards, a norm over all gradients say, exchanged once a step (rule
/// R12).
#pragma once

#include "actors/protocol/rewind_messages.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

/// The norm of what the partials are sums of squares of: the root of their sum, added up in shard
/// and block order, which is one order for any number of shards. Bit pattern of a double;
/// `combiner` of a job that clips by norm.
std::uint64_t norm_of(const std::vector<norm_partials>& all);

/// How many steps below the open one keep their own partials for shards that lag: all that can lag
/// without a rewind, with an early publish of `bound` (R7).
constexpr std::uint32_t norm_steps(std::uint32_t bound) { return bound + 2; }

/// Pure: partials of this shard and of the others, what to send and what to ask for.
class norm_exchange {
public:
  using combiner = std::function<std::uint64_t(const std::vector<norm_partials>&)>;

  /// `combine` null: nothing couples, and nothing below does anything. `keep`: norm_steps().
  norm_exchange(ps_shard_id self, std::uint32_t ps_shards, std::uint32_t keep, combiner combine);

  bool couples() const { return combine_ != nullptr; }
  /// After a start or a rewind: only these own partials are known.
  void restart(timeline_id timeline, std::map<step_id, norm_partials> own);

  /// The root of `step` is complete. True when its own partials are to be measured first; then only
  /// once.
  bool must_measure(step_id step);
  void measured(step_id step, norm_partials partials, ps_shard_actions& out);
  void heard(const protocol::norm& message, step_id open);
  void asked(const protocol::norm_request& message, ps_shard_actions& out) const;
  /// The coupled quantity of `step`; empty while partials are missing.
  std::optional<std::uint64_t> combined(step_id step) const;
  const norm_partials& own(step_id step) const;
  /// `open` is the next step to apply: forgets what nobody will ask for.
  void forget_before(step_id open, bool forget_all);
  /// Says again and asks again for `open`, if its partials are measured.
  void repeat(step_id open, ps_shard_actions& out) const;
  /// The lowest step from which on every own norm below `open` is known.
  step_id known_from(step_id open) const;

private:
  void send(step_id step, ps_shard_id to, ps_shard_actions& out) const;

  ps_shard_id self_;
  std::uint32_t ps_shards_;
  std::uint32_t keep_;
  combiner combine_;
  timeline_id timeline_{};
  std::map<step_id, norm_partials> own_;
  std::set<step_id> measuring_;
  std::map<step_id, std::map<ps_shard_id, norm_partials>> others_;
};

} // namespace dlrun::ps_shard
