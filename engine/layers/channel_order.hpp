/// Between the order of activations (channels innermost) and PyTorch's (channels first), for layers
/// whose meaning depends on it.
#pragma once

#include "engine/channel_extents.hpp"
#include "kernels/cpu/permute.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace dlrun::engine {

/// The two orders of records of one shape, for the processor.
class channel_order {
public:
  explicit channel_order(const shape& record)
      : extents_(record) {}

  bool same() const { return extents_.same(); }

  /// `values` of `batch` records with channels first: itself, or in `memory`.
  std::span<const float> to_first(std::int64_t batch, std::span<const float> values,
                                  std::vector<float>& memory) const {
    if (same()) return values;
    memory.resize(values.size());
    kernels::cpu::transpose(batch, extents_.pixels, extents_.channels, values, memory);
    return memory;
  }

  /// `to` = `values`, which has channels first, with channels last. Disjoint.
  void to_last(std::int64_t batch, std::span<const float> values, std::span<float> to) const {
    if (same())
      std::copy(values.begin(), values.end(), to.begin());
    else
      kernels::cpu::transpose(batch, extents_.channels, extents_.pixels, values, to);
  }

private:
  channel_extents extents_;
};

} // namespace dlrun::engine
