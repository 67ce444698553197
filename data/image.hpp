/// Pictures in files: PNG and JPEG.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <span>
#include <string>
#include <vector>

namespace dlrun::data {

/// Red, green, blue, 8 bits each; (height, width, 3) row by row.
struct rgb_image {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<std::uint8_t> pixels;
};

/// Larger pictures are refused, by their heads, before memory is taken.
inline constexpr std::uint32_t image_side_max = 16384;
inline constexpr std::uint64_t image_pixels_max = std::uint64_t{1} << 26;

/// Decodes a whole PNG or JPEG, told by its first bytes, not by the file's name. Palettes and gray
/// become red, green, blue; transparency is dropped; colour profiles and gamma are not applied, as
/// Pillow does it. Both decoders compute in integers: the same bytes everywhere.
/// @returns bad_data naming `name`: truncated, damaged (checksums, and JPEG's warnings, are
/// errors), too large, 16 bits a channel, CMYK.
result<rgb_image> decode_image(std::span<const std::uint8_t> bytes, const std::string& name);

result<rgb_image> decode_png(std::span<const std::uint8_t> bytes, const std::string& name);
result<rgb_image> decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name);

/// @returns bad_data unless a picture of that size is one that is read.
result<void> check_image_size(std::uint64_t height, std::uint64_t width, const std::string& name);

/// Copies to planes, (channels, height, width). One channel is the luminance of ITU-R 601 in 16-bit
/// fixed point, as Pillow's convert("L"): (19595 r + 38470 g + 7471 b + 32768) / 65536.
void to_planes(const rgb_image& image, std::uint32_t channels, std::span<std::uint8_t> out);

} // namespace dlrun::data
