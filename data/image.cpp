#include "data/image.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::data {

result<rgb_image> decode_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8) return decode_jpeg(bytes, name);
  if (bytes.size() >= 2 && bytes[0] == 0x89 && bytes[1] == 'P') return decode_png(bytes, name);
  return fail(
      error_code::bad_data,
      fmt::format("{}: {}", name, bytes.empty() ? "the file is empty" : "neither a PNG nor a JPEG picture"));
}

result<void> check_image_size(std::uint64_t height, std::uint64_t width, const std::string& name) {
  const bool fits = height >= 1 && width >= 1 && height <= image_side_max && width <= image_side_max &&
                    height * width <= image_pixels_max;
  if (fits) return {};
  return fail(error_code::bad_data,
              fmt::format("{}: a picture of {} x {} pixels; at most {} a side and {} in all are read", name,
                          height, width, image_side_max, image_pixels_max));
}

void to_planes(const rgb_image& image, std::uint32_t channels, std::span<std::uint8_t> out) {
  const std::size_t pixels = std::size_t{image.height} * image.width;
  DLRUN_CHECK((channels == 1 || channels == 3) && out.size() == pixels * channels,
              "{} bytes for {} channels of {}", out.size(), channels, pixels);
  const auto* const from = image.pixels.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint32_t r = from[3 * i];
    const std::uint32_t g = from[3 * i + 1];
    const std::uint32_t b = from[3 * i + 2];
    if (channels == 1) {
      out[i] = static_cast<std::uint8_t>((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
      continue;
    }
    out[i] = static_cast<std::uint8_t>(r);
    out[pixels + i] = static_cast<std::uint8_t>(g);
    out[2 * pixels + i] = static_cast<std::uint8_t>(b);
  }
}

} // namespace dlrun::data
