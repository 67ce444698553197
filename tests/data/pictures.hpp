/// PNG and JPEG files for tests, made by the libraries themselves.
#pragma once

#include "data/image.hpp"
#include "tests/data/files.hpp"

#include <cstdio>
#include <jpeglib.h>
#include <png.h>

namespace dlrun::test {

/// A picture with a gradient that depends on `seed`.
inline data::rgb_image make_picture(std::uint32_t height, std::uint32_t width, std::uint32_t seed = 0) {
  data::rgb_image made{height, width, {}};
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x)
      for (const std::uint32_t value : {9 * y + seed, 7 * x + 40, 5 * (x + y) + 2 * seed})
        made.pixels.push_back(static_cast<std::uint8_t>(value % 256));
  return made;
}

/// `format` is one of libpng's PNG_FORMAT_*; pixels are taken in that format.
inline bytes png_bytes(std::uint32_t height, std::uint32_t width, const bytes& pixels,
                       png_uint_32 format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = height;
  image.width = width;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  bytes out(size);
  png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr);
  out.resize(size);
  return out;
}
inline bytes png_bytes(const data::rgb_image& picture) {
  return png_bytes(picture.height, picture.width, picture.pixels);
}

inline bytes jpeg_bytes(const data::rgb_image& picture, bool gray = false, int quality = 95) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = picture.height;
  jpeg.image_width = picture.width;
  jpeg.input_components = gray ? 1 : 3;
  jpeg.in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  const std::size_t row = picture.pixels.size() / picture.height;
  while (jpeg.next_scanline < picture.height) {
    auto* at = const_cast<unsigned char*>(picture.pixels.data() + jpeg.next_scanline * row);
    jpeg_write_scanlines(&jpeg, &at, 1);
  }
  jpeg_finish_compress(&jpeg);
  bytes out(memory, memory + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return out;
}

} // namespace dlrun::test
