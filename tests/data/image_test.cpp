#include "data/image.hpp"

#include "data/resize.hpp"
#include "tests/data/pictures.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::jpeg_bytes;
using test::make_picture;
using test::png_bytes;
using testing::HasSubstr;

std::string refusal(const bytes& file) {
  const auto image = decode_image(file, "p.img");
  return image ? "" : image.error().message;
}

TEST(image, a_png_comes_back_as_it_was) {
  const auto picture = make_picture(9, 13);
  const auto read = decode_image(png_bytes(picture), "p.png");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->height, 9U);
  EXPECT_EQ(read->width, 13U);
  EXPECT_EQ(read->pixels, picture.pixels);
}

TEST(image, gray_becomes_colour_and_transparency_is_dropped) {
  const auto gray = decode_image(png_bytes(1, 2, {10, 200}, PNG_FORMAT_GRAY), "gray.png");
  ASSERT_TRUE(gray) << gray.error().message;
  EXPECT_EQ(gray->pixels, (bytes{10, 10, 10, 200, 200, 200}));
  const auto clear = decode_image(png_bytes(1, 2, {1, 2, 3, 0, 4, 5, 6, 255}, PNG_FORMAT_RGBA), "clear.png");
  ASSERT_TRUE(clear) << clear.error().message;
  EXPECT_EQ(clear->pixels, (bytes{1, 2, 3, 4, 5, 6}));
}

TEST(image, a_jpeg_is_nearly_what_it_was_and_the_same_every_time) {
  const auto picture = make_picture(16, 24);
  const auto file = jpeg_bytes(picture);
  const auto read = decode_image(file, "p.jpg");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->pixels.size(), picture.pixels.size());
  double difference = 0;
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    difference += std::abs(int{read->pixels[i]} - int{picture.pixels[i]});
  EXPECT_LT(difference / static_cast<double>(picture.pixels.size()), 8);
  EXPECT_EQ(decode_image(file, "p.jpg")->pixels, read->pixels);
  const auto gray = decode_image(jpeg_bytes({2, 2, {50, 50, 50, 50}}, true), "gray.jpg");
  ASSERT_TRUE(gray) << gray.error().message;
  EXPECT_EQ(gray->pixels, bytes(12, 50));
}

TEST(image, a_picture_cut_anywhere_is_an_error_that_names_it) {
  for (const auto& whole : {png_bytes(make_picture(20, 20)), jpeg_bytes(make_picture(20, 20))})
    for (std::size_t length = 0; length + 2 < whole.size(); length += 7) {
      const bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_THAT(refusal(part), HasSubstr("p.img")) << length << " of " << whole.size();
    }
}

TEST(image, flipped_bits_never_crash_and_in_a_png_are_found) {
  const auto png = png_bytes(make_picture(12, 12));
  for (std::size_t at = 8; at < png.size(); ++at) {
    auto broken = png;
    broken[at] ^= 0x10;
    const auto read = decode_image(broken, "p.img");
    EXPECT_TRUE(!read || read->pixels == make_picture(12, 12).pixels) << at;
  }
  const auto jpeg = jpeg_bytes(make_picture(12, 12));
  for (std::size_t at = 2; at < jpeg.size(); ++at) {
    auto broken = jpeg;
    broken[at] ^= 0x10;
    static_cast<void>(decode_image(broken, "p.img"));
  }
}

/// The head of a PNG that claims this size, with a right checksum and no pixels.
bytes png_head(std::uint32_t width, std::uint32_t height, std::uint8_t depth, std::uint8_t colour) {
  bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  for (const auto size : {width, height})
    for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::uint8_t>(size >> shift));
  out.insert(out.end(), {depth, colour, 0, 0, 0});
  const auto crc = ::crc32(0, out.data() + 12, 17);
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::uint8_t>(crc >> shift));
  out.insert(out.end(), {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xAF, 0x06, 0x1E});
  return out;
}

TEST(image, sizes_that_cannot_be_are_refused_before_memory_is_taken) {
  EXPECT_THAT(refusal(png_head(60'000, 60'000, 8, 2)), HasSubstr("a picture of 60000 x 60000 pixels"));
  EXPECT_THAT(refusal(png_head(16'000, 16'000, 8, 2)), HasSubstr("at most 16384 a side"));
  EXPECT_THAT(refusal(png_head(8'000, 8'000, 8, 2)), HasSubstr("more pixels than the file can hold"));
  EXPECT_THAT(refusal(png_head(0, 5, 8, 2)), HasSubstr("p.img"));
  EXPECT_THAT(refusal(png_head(4, 4, 16, 2)), HasSubstr("16 bits a channel"));
}

TEST(image, what_is_no_picture_is_told) {
  EXPECT_THAT(refusal({}), HasSubstr("p.img: the file is empty"));
  EXPECT_THAT(refusal({'G', 'I', 'F', '8'}), HasSubstr("neither a PNG nor a JPEG"));
}

TEST(image, planes_are_channels_first_and_gray_is_that_of_pillow) {
  const rgb_image picture{1, 2, {255, 0, 0, 10, 20, 30}};
  bytes planes(6);
  to_planes(picture, 3, planes);
  EXPECT_EQ(planes, (bytes{255, 10, 0, 20, 0, 30}));
  bytes gray(2);
  to_planes(picture, 1, gray);
  EXPECT_EQ(gray, (bytes{76, 18})); // Pillow 9.4: Image.convert("L")
}

// Expected values: PyTorch 1.13, interpolate(x, mode="bilinear", align_corners=False), rounded.
TEST(image, resizes_between_the_centres_of_pixels) {
  const rgb_image picture{2, 2, {0, 0, 0, 100, 100, 100, 200, 200, 200, 40, 40, 40}};
  const auto larger = resize_bilinear(picture, 4, 4);
  bytes gray;
  for (std::size_t i = 0; i < larger.pixels.size(); i += 3) gray.push_back(larger.pixels[i]);
  EXPECT_EQ(gray, (bytes{0, 25, 75, 100, 50, 59, 76, 85, 150, 126, 79, 55, 200, 160, 80, 40}));
  EXPECT_EQ(resize_bilinear(picture, 1, 1).pixels, bytes(3, 85));
  EXPECT_EQ(resize_bilinear(picture, 2, 2).pixels, picture.pixels);
}

} // namespace
} // namespace dlrun::data
