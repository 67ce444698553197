/// Between the order of activations (channels innermost) and PyTorch's (channels first), for layers
/// whose meaning depends on it.
#pragma once

#include "kernels/cpu/permute.hpp"
#include <dlrun/shape.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace dlrun::engine {

/// The two orders of records of one shape. They are the same where there is one channel or one
/// pixel.
class channel_order {
public:
  explicit channel_order(const shape& record)
      : channels_(record[0])
      , pixels_(*element_count(record) / record[0]) {}

  bool same() const { return channels_ == 1 || pixels_ == 1; }

  /// `values` of `batch` records with channels first: itself, or in `memory`.
  std::span<const float> to_first(std::int64_t batch, std::span<const float> values,
                                  std::vector<float>& memory) const {
    if (same()) return values;
    memory.resize(values.size());
    kernels::cpu::transpose(batch, pixels_, channels_, values, memory);
    return memory;
  }

  /// `to` = `values`, which has channels first, with channels last. Disjoint.
  void to_last(std::int64_t batch, std::span<const float> values, std::span<float> to) const {
    if (same())
      std::copy(values.begin(), values.end(), to.begin());
    else
      kernels::cpu::transpose(batch, channels_, pixels_, values, to);
  }

private:
  std::int64_t channels_, pixels_;
};

} // namespace dlrun::engine
