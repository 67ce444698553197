/// What a worker pushes through: one segment, one gradient.
#pragma once

#include "transport/tensor_channel.hpp"

#include <atomic>
#include <cstdint>

namespace dlrun::transport {

/// Says which gradient a buffer holds, and of which worker. The push message carries the same
/// values, and the PS shard compares them.
struct gradient_header {
  timeline_id timeline;
  worker_id worker;
  incarnation worker_incarnation;
  step_id step;
  /// The gradient is the sum over the slots [slots_begin, slots_end) of the step.
  slot_id slots_begin;
  slot_id slots_end;
  /// Records that went into it.
  std::uint64_t records = 0;
  /// Length of the flat gradient vector.
  std::uint64_t flat_size = 0;
  /// Number of the sealing, given by gradient_writer::seal_as(); 0 = not sealed.
  std::uint64_t sequence = 0;

  bool operator==(const gradient_header&) const = default;
};

/// Size in bytes of a gradient segment for `floats` values; a reader must expect this size.
std::size_t gradient_segment_bytes(std::size_t floats);

/// The part of it to fetch for values [first, first + count).
segment_part gradient_part(std::size_t first, std::size_t count);

/// The worker's end of a gradient segment: writes the gradient of the whole flat vector. Used by
/// one thread at a time.
class gradient_writer {
public:
  /// @returns limit_exceeded for 0 or too many floats, system when the OS refuses.
  static result<gradient_writer> create(std::size_t floats);

  /// Takes the seal off and lends the values for writing. What they hold is what they held before.
  std::span<float> begin_write();
  /// Says what the values are, before the push message is sent. `header.flat_size` must be the
  /// number of floats; `header.sequence` is ignored. @returns the header with its sequence, for the
  /// message. A buffer that is sealed already must be taken by begin_write() first. Values that
  /// nobody was told of yet may still be written under the seal: each once.
  gradient_header seal_as(gradient_header header);

  std::span<const float> values() const;
  /// To be offered to the PS shards.
  const segment& shared() const { return segment_; }
  std::size_t floats() const { return floats_; }

private:
  gradient_writer(segment segment, std::size_t floats);
  std::span<float> mutable_values();

  segment segment_;
  std::size_t floats_;
  std::uint64_t sequence_ = 0;
  bool sealed_ = false;
};

/// The PS shard's end of a gradient segment: reads what a gradient_writer sealed. Thread-safe
/// (reads only).
class gradient_reader {
public:
  /// @returns protocol when the segment is not one of `floats` values.
  static result<gradient_reader> open(segment segment, std::size_t floats);

  /// Lends the values, (flat_size), if the buffer is sealed as exactly `expected`.
  /// @returns protocol otherwise, naming what differs.
  result<std::span<const float>> view(const gradient_header& expected) const;

  /// True if the buffer is still sealed as it was when view(expected) was called. Call it after
  /// using the values and before the result counts. A correct worker does not write while a PS
  /// shard may read; a thawed zombie may.
  bool unchanged(const gradient_header& expected) const;

  std::size_t floats() const { return floats_; }

private:
  gradient_reader(segment segment, std::size_t floats);

  segment segment_;
  std::size_t floats_;
};

} // namespace dlrun::transport
