/// What a PS shard hands out for an evaluation: its parameters at one version, which never change.
#pragma once

#include "transport/tensor_channel.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <span>

namespace dlrun::transport {

/// Size in bytes of a segment of `floats` frozen parameters; a reader must expect this size.
std::size_t frozen_parameters_bytes(std::size_t floats);

/// What to fetch of it: all.
segment_part frozen_part(std::size_t floats);

/// The PS shard's end: the segment is filled, sealed, and only then offered. Used by one thread at
/// a time.
class frozen_parameters_writer {
public:
  /// @returns limit_exceeded for 0 or too many floats, system when the OS refuses.
  static result<frozen_parameters_writer> create(std::size_t floats);

  /// To be filled before seal_as(); valid until the writer dies.
  std::span<float> values();
  /// Says what they are. Once.
  void seal_as(timeline_id timeline, version_id version);
  /// To be offered to readers, when it is sealed.
  const segment& shared() const { return segment_; }

private:
  frozen_parameters_writer(segment segment, std::size_t floats);

  segment segment_;
  std::size_t floats_;
};

/// A reader's side: the parameters in `from`, (floats), valid as long as it is.
/// @returns protocol when they are not `floats` parameters of just that timeline and version.
result<std::span<const float>> frozen_parameters(const segment& from, std::size_t floats,
                                                 timeline_id timeline, version_id version);

} // namespace dlrun::transport
