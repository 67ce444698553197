#include "data/gzip_stream.hpp"
#include "data/image.hpp"

#include <csetjmp>
#include <cstring>
#include <fmt/format.h>
#include <png.h>

namespace dlrun::data {
namespace {

/// libpng reports errors by a jump. So everything between is plain data, and lives in here.
struct png_read {
  std::span<const std::uint8_t> left;
  char said[160] = {};
  std::vector<png_bytep> rows;
  rgb_image image;
  bool deep = false; // 16 bits a channel
  bool too_large = false;
};

void note_error(png_structp png, png_const_charp text) {
  auto& read = *static_cast<png_read*>(png_get_error_ptr(png));
  std::strncpy(read.said, text, sizeof read.said - 1);
  png_longjmp(png, 1);
}

/// Warnings are about chunks that do not change the pixels.
void ignore_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep out, png_size_t count) {
  auto& read = *static_cast<png_read*>(png_get_io_ptr(png));
  if (count > read.left.size()) png_error(png, "the file is truncated");
  std::memcpy(out, read.left.data(), count);
  read.left = read.left.subspan(count);
}

/// The size, and every format made 8-bit red, green, blue. @returns false for what is not read.
bool prepare(png_structp png, png_infop info, png_read& read) {
  png_read_info(png, info);
  const auto height = png_get_image_height(png, info);
  const auto width = png_get_image_width(png, info);
  read.image.height = height;
  read.image.width = width;
  read.deep = png_get_bit_depth(png, info) == 16;
  read.too_large = !check_image_size(height, width, {});
  if (read.deep || read.too_large) return false;
  if (png_get_rowbytes(png, info) * height / deflate_ratio_max > read.left.size())
    png_error(png, "its head promises more pixels than the file can hold");
  const auto colour = png_get_color_type(png, info);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA) {
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_gray_to_rgb(png);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != std::size_t{3} * width) png_error(png, "an unexpected pixel format");
  return true;
}

/// @returns false when libpng jumped, or there is nothing to be decoded.
bool decode_into(png_structp png, png_infop info, png_read& read) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &read, take_bytes);
  if (!prepare(png, info, read)) return false;
  const std::size_t row = std::size_t{3} * read.image.width;
  read.image.pixels.resize(row * read.image.height);
  read.rows.resize(read.image.height);
  for (std::size_t y = 0; y < read.rows.size(); ++y) read.rows[y] = read.image.pixels.data() + y * row;
  png_read_image(png, read.rows.data());
  png_read_end(png, nullptr); // also finds what is cut off after the pixels
  return true;
}

} // namespace

result<rgb_image> decode_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  png_read read;
  read.left = bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &read, note_error, ignore_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  const bool decoded = info != nullptr && decode_into(png, info, read);
  png_destroy_read_struct(&png, &info, nullptr);
  if (decoded) return std::move(read.image);
  if (read.too_large)
    return tl::unexpected(check_image_size(read.image.height, read.image.width, name).error());
  if (read.deep)
    return fail(error_code::bad_data,
                fmt::format("{}: 16 bits a channel; pictures of 8 are read, convert it", name));
  return fail(error_code::bad_data,
              fmt::format("{}: byte {}: damaged PNG: {}", name, bytes.size() - read.left.size(),
                          read.said[0] != 0 ? read.said : "libpng refuses to start"));
}

} // namespace dlrun::data
