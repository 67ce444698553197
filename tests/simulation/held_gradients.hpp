/// The gradients that a simulated PS shard uses.
#pragma once

#include "actors/ps_shard/ps_shard_actions.hpp"
#include "tests/simulation/message.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace dlrun::simulation {

class process;
class world;

/// A gradient in use: from a worker's buffer, read in place, or the result of a sum.
struct held_gradient {
  value content = 0;
  std::vector<std::uint32_t> times; ///< how often each slot is in it, by our own count
  std::shared_ptr<gradient_memory> memory;
  std::size_t buffer = 0;
  std::uint64_t sequence = 0;
};

/// By the number that the core knows them by. Nothing is read from a buffer that its worker has
/// used again: whoever tries that ends.
class held_gradients {
public:
  held_gradients(world& where, process& of, ps_shard_id shard)
      : world_(where)
      , process_(of)
      , shard_(shard) {}

  /// What a push names; nothing when it is not there any more.
  std::optional<held_gradient> map(const gradient_push& what) const;
  ps_shard::value_id add(held_gradient mapped);
  void combine(const ps_shard::combine& order, timeline_id timeline);
  void make_zero(const ps_shard::make_zero& order);
  void release(const ps_shard::release& order);
  /// A value at the moment it is read, by a shard that is on `timeline`. Null: that was its end.
  const held_gradient* use(ps_shard::value_id which, timeline_id timeline);
  std::size_t size() const { return values_.size(); }

private:
  world& world_;
  process& process_;
  ps_shard_id shard_;
  std::map<ps_shard::value_id, held_gradient> values_;
  std::uint64_t next_value_ = 1;
};

} // namespace dlrun::simulation
