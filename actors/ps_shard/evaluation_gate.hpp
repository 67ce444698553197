/// How far a PS shard may train before what it has made is evaluated (rule R17).
#pragma once

#include <algorithm>
#include <dlrun/ids.hpp>
#include <limits>
#include <set>

namespace dlrun::ps_shard {

/// Pure: says up to which version a PS shard may train. It needs no storage: a shard was allowed to
/// come to where it stands, so after a restart it stops at the next version that is to be
/// evaluated, until a dispatcher says more. That may be less than it was told before, never more.
class evaluation_gate {
public:
  static constexpr version_id no_limit{std::numeric_limits<std::uint64_t>::max()};

  /// `gates`: versions that it goes beyond only when it is told to.
  explicit evaluation_gate(std::set<version_id> gates)
      : gates_(std::move(gates)) {
    restart({});
  }

  /// It stands at `applied`, on a timeline that nobody has told anything of.
  void restart(version_id applied) {
    const auto next = gates_.lower_bound(applied);
    limit_ = next == gates_.end() ? no_limit : *next;
  }
  /// A dispatcher says how far it may go. One that knows less is ignored.
  void raise(version_id limit) { limit_ = std::max(limit_, limit); }

  version_id limit() const { return limit_; }
  bool may_reach(version_id version) const { return version <= limit_; }

private:
  std::set<version_id> gates_;
  version_id limit_;
};

} // namespace dlrun::ps_shard
