/// The records of a TensorBoard event file, as far as scalars go (proto/tensorboard_event.proto).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlrun::observability {

/// A number under the name by which TensorBoard shows it.
struct scalar {
  std::string tag; ///< "train/loss"
  double value = 0;
};

// Each is a TFRecord, framed: event files are these and nothing else. `wall_time` is in seconds
// since 1970.

/// The first of a file: which form the others have.
std::string file_head(double wall_time);

/// What was written so far of `step` and beyond, in this file and those before, is void (SessionLog
/// START).
std::string restart_event(std::uint64_t step, double wall_time);

/// Stored as 32-bit floats.
std::string scalars_event(std::uint64_t step, double wall_time, std::span<const scalar> scalars);

} // namespace dlrun::observability
