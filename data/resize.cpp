#include "data/resize.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::data {
namespace {

/// Two neighbours and how much of the second.
struct between {
  std::size_t first = 0;
  std::size_t second = 0;
  double part = 0;
};

std::vector<between> places(std::uint32_t from, std::uint32_t to) {
  std::vector<between> all(to);
  const double scale = static_cast<double>(from) / to;
  for (std::uint32_t i = 0; i < to; ++i) {
    const double at = std::max((i + 0.5) * scale - 0.5, 0.0);
    const auto first = std::min(static_cast<std::size_t>(at), std::size_t{from} - 1);
    all[i] = {first, std::min(first + 1, std::size_t{from} - 1), at - static_cast<double>(first)};
  }
  return all;
}

double mix(double a, double b, double part) { return a + (b - a) * part; }

} // namespace

rgb_image resize_bilinear(const rgb_image& image, std::uint32_t height, std::uint32_t width) {
  if (image.height == height && image.width == width) return image;
  rgb_image out{height, width, std::vector<std::uint8_t>(std::size_t{3} * height * width)};
  const auto rows = places(image.height, height);
  const auto columns = places(image.width, width);
  const auto pixel = [&](std::size_t y, std::size_t x, std::size_t c) {
    return static_cast<double>(image.pixels[(y * image.width + x) * 3 + c]);
  };
  auto at = out.pixels.begin();
  for (const auto& y : rows)
    for (const auto& x : columns)
      for (std::size_t c = 0; c < 3; ++c) {
        const double above = mix(pixel(y.first, x.first, c), pixel(y.first, x.second, c), x.part);
        const double below = mix(pixel(y.second, x.first, c), pixel(y.second, x.second, c), x.part);
        *at++ = static_cast<std::uint8_t>(std::floor(mix(above, below, y.part) + 0.5));
      }
  return out;
}

} // namespace dlrun::data
