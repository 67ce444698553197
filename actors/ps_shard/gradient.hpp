/// A PS shard's part of a gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace dlrun::ps_shard {

/// The shard's floats of a gradient, or of the sum of several, and what keeps them in memory.
struct gradient {
  std::span<const float> floats;
  std::shared_ptr<const void> memory;
  /// Of a worker's buffer, which is read in place: whether it is still what was pushed. To be asked
  /// after reading. Null: nobody writes there.
  std::function<bool()> intact{};
  std::uint64_t from = 0; ///< floats [from, end) are final: 0 once it is pushed

  bool is_intact() const { return !intact || intact(); }
};

} // namespace dlrun::ps_shard
