/// Records changed at random, so that a model meets more of them than there are.
#pragma once

#include "data/dataset.hpp"
#include "proto/job_spec.pb.h"

#include <dlrun/ids.hpp>
#include <optional>

namespace dlrun::data {

/// Random crop and horizontal flip of images, as torchvision's RandomCrop(size, padding) and
/// RandomHorizontalFlip(p), in this order. What is drawn is a function of (seed, step, slot, place
/// of the record in its microbatch) through dlrun/random.hpp: whoever computes a slot, and how
/// often, changes it in the same way. Immutable and thread-safe.
class augmentation {
public:
  /// @returns nothing when `spec` asks for nothing; bad_spec when the records of `data` are no
  /// images: of shape (height, width) or (channels, height, width).
  static result<std::optional<augmentation>> build(const spec::AugmentSpec& spec, const dataset& data);

  /// Changes `count` records in place, (count, channels, height, width). What a crop takes from
  /// beyond the edge is black: a stored 0 after normalisation.
  void apply(std::uint64_t seed, step_id step, slot_id slot, std::uint64_t count,
             std::span<float> records) const;

private:
  struct change {
    std::int64_t down = 0; ///< where the crop begins, in rows of the original
    std::int64_t right = 0;
    bool flipped = false;
  };

  augmentation() = default;
  void change_record(const change& by, std::span<const float> from, std::span<float> to) const;

  std::int64_t channels_ = 1;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  std::int64_t padding_ = 0;
  float flip_probability_ = 0;
  std::vector<float> black_; ///< one a channel
};

} // namespace dlrun::data
