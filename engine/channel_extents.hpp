/// What the order of activations (channels innermost) and PyTorch's (channels first) differ by.
#pragma once

#include <cstdint>
#include <dlrun/shape.hpp>

namespace dlrun::engine {

/// Channels and pixels of records of one shape.
struct channel_extents {
  explicit channel_extents(const shape& record)
      : channels{record[0]}
      , pixels{*element_count(record) / record[0]} {}

  /// Whether both orders are one: with one channel, or one pixel.
  bool same() const { return channels == 1 || pixels == 1; }

  std::int64_t channels, pixels;
};

} // namespace dlrun::engine
