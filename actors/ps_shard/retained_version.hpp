/// The newest version that an earlier start of a PS shard left in memory (rule R36).
#pragma once

#include "actors/common/retained_memory.hpp"
#include "actors/common/store_extras.hpp"
#include "actors/ps_shard/optimizer_state.hpp"
#include "transport/parameter_segment.hpp"

#include <span>

namespace dlrun::ps_shard {

/// What the memory of a PS shard has to look like.
struct retained_shape {
  engine::shard_range range;
  std::size_t state_floats = 0;
  std::size_t image_floats = 0;
  std::size_t metric_sums = 0;
  std::size_t beside_bytes_max = 0;
};

/// Mapped, read-only, while this lives.
class retained_version {
public:
  /// @returns protocol or storage_damaged when there is none, or none of this shape.
  static result<retained_version> open(common::retained_memory memory, const retained_shape& shape);

  timeline_id timeline() const { return name_.timeline; }
  version_id version() const { return name_.version; }
  /// Whether the parameters of the version before are whole too.
  bool has_previous() const { return has_previous_; }
  /// What is beside the newest.
  const common::retained_extra& extra() const { return extra_; }

  /// Of the newest version, or of the one before.
  std::span<const float> parameters(version_id version) const;
  /// Of the newest.
  std::span<const float> state() const;

private:
  retained_version(transport::parameter_reader parameters, transport::parameter_reader state,
                   std::size_t state_floats);
  result<void> find_newest(const retained_shape& shape);

  transport::parameter_reader parameters_;
  transport::parameter_reader state_;
  std::size_t state_floats_;
  transport::whole_version name_{};
  bool has_previous_ = false;
  common::retained_extra extra_;
};

} // namespace dlrun::ps_shard
