#include "data/image.hpp"

#include <csetjmp>
#include <cstdio> // jpeglib.h needs FILE
#include <fmt/format.h>
#include <jpeglib.h>

namespace dlrun::data {
namespace {

/// libjpeg reports errors by a jump. So everything between is plain data, and lives in here.
struct jpeg_read {
  jpeg_error_mgr errors; // first: libjpeg knows only this
  std::jmp_buf back;
  char said[JMSG_LENGTH_MAX] = {};
  rgb_image image;
  bool too_large = false;
};

void note_error(j_common_ptr state) {
  auto& read = *reinterpret_cast<jpeg_read*>(state->err);
  if (read.said[0] == 0) state->err->format_message(state, read.said);
  std::longjmp(read.back, 1);
}

/// A warning (level -1) is damage that libjpeg papers over with gray: an error here.
void note_message(j_common_ptr state, int level) {
  if (level < 0) note_error(state);
}

/// @returns false when libjpeg jumped, or there is nothing to be decoded.
bool decode_into(jpeg_decompress_struct& jpeg, jpeg_read& read, std::span<const std::uint8_t> bytes) {
  if (setjmp(read.back) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  read.image.height = jpeg.image_height;
  read.image.width = jpeg.image_width;
  read.too_large = !check_image_size(jpeg.image_height, jpeg.image_width, {});
  if (read.too_large) return false;
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW; // of the methods the one whose bits do not depend on the processor
  jpeg_start_decompress(&jpeg);
  const std::size_t row = std::size_t{3} * jpeg.output_width;
  read.image.pixels.resize(row * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW at = read.image.pixels.data() + jpeg.output_scanline * row;
    jpeg_read_scanlines(&jpeg, &at, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

} // namespace

result<rgb_image> decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name) {
  jpeg_read read{};
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&read.errors);
  read.errors.error_exit = note_error;
  read.errors.emit_message = note_message;
  const bool decoded = decode_into(jpeg, read, bytes);
  jpeg_destroy_decompress(&jpeg);
  if (decoded) return std::move(read.image);
  if (read.too_large)
    return tl::unexpected(check_image_size(read.image.height, read.image.width, name).error());
  return fail(error_code::bad_data,
              fmt::format("{}: damaged JPEG, or one of a kind that is not read: {}", name, read.said));
}

} // namespace dlrun::data
