#include "data/augmentation.hpp"

#include <dlrun/random.hpp>

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::data {
namespace {

/// A number in [-padding, padding] from 32 random bits, by their position in the range.
std::int64_t draw_offset(std::uint32_t word, std::int64_t padding) {
  const auto range = static_cast<std::uint64_t>(2 * padding + 1);
  return static_cast<std::int64_t>((std::uint64_t{word} * range) >> 32) - padding;
}

} // namespace

result<std::optional<augmentation>> augmentation::build(const spec::AugmentSpec& spec, const dataset& data) {
  if (!spec.has_random_crop() && !spec.has_horizontal_flip()) return std::nullopt;
  const auto& shape = data.record_shape();
  if (shape.size() != 2 && shape.size() != 3)
    return fail(
        error_code::bad_spec,
        fmt::format("data.train.augment: records of {} are no images ({}); images are (height, width) or "
                    "(channels, height, width)",
                    data.records_name(), fmt::join(shape, " x ")));
  augmentation made;
  made.channels_ = shape.size() == 3 ? shape[0] : 1;
  made.height_ = shape[shape.size() - 2];
  made.width_ = shape[shape.size() - 1];
  made.padding_ = spec.has_random_crop() ? spec.random_crop().padding() : 0;
  made.flip_probability_ = spec.has_horizontal_flip() ? static_cast<float>(spec.horizontal_flip().p()) : 0.0F;
  made.black_ = data.zeroes();
  // Without a channel dimension all share one normalisation.
  if (made.black_.size() != static_cast<std::size_t>(made.channels_))
    made.black_.assign(static_cast<std::size_t>(made.channels_), made.black_.front());
  return made;
}

void augmentation::change_record(const change& by, std::span<const float> from, std::span<float> to) const {
  auto at = to.begin();
  for (std::int64_t c = 0; c < channels_; ++c) {
    const auto plane = from.subspan(static_cast<std::size_t>(c * height_ * width_));
    const float black = black_[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::int64_t row = y + by.down;
      for (std::int64_t x = 0; x < width_; ++x) {
        const std::int64_t column = (by.flipped ? width_ - 1 - x : x) + by.right;
        const bool inside = row >= 0 && row < height_ && column >= 0 && column < width_;
        *at++ = inside ? plane[static_cast<std::size_t>(row * width_ + column)] : black;
      }
    }
  }
}

void augmentation::apply(std::uint64_t seed, step_id step, slot_id slot, std::uint64_t count,
                         std::span<float> records) const {
  const auto size = static_cast<std::size_t>(channels_ * height_ * width_);
  DLRUN_CHECK(records.size() == count * size, "{} floats for {} images of {}", records.size(), count, size);
  const random_stream draws(seed, random_purpose::augmentation, step.value, slot.value, 0);
  std::vector<float> original(size);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto words = draws.words(i);
    const auto record = records.subspan(i * size, size);
    std::ranges::copy(record, original.begin());
    change_record({.down = draw_offset(words[0], padding_),
                   .right = draw_offset(words[1], padding_),
                   .flipped = random_stream::uniform(words[2]) < flip_probability_},
                  original, record);
  }
}

} // namespace dlrun::data
