/// Pictures of another size.
#pragma once

#include "data/image.hpp"

namespace dlrun::data {

/// Bilinear between the centres of pixels, edges repeated, rounded to the nearest byte: as
/// torch.nn.functional.interpolate(mode="bilinear", align_corners=False), without averaging when it
/// shrinks.
rgb_image resize_bilinear(const rgb_image& image, std::uint32_t height, std::uint32_t width);

} // namespace dlrun::data
