#include "data/decoders.hpp"

#include <cstdio> // jpeglib.h needs FILE
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

namespace dlrun::data {
namespace {

/// As it says itself; one that stands in for it has its version in its header alone.
std::string libjpeg_version() {
  jpeg_error_mgr errors{};
  jpeg_std_error(&errors);
  std::string version = errors.jpeg_message_table[JMSG_VERSION];
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  constexpr int turbo = LIBJPEG_TURBO_VERSION_NUMBER;
  version += fmt::format(", libjpeg-turbo {}.{}.{}", turbo / 1000000, turbo / 1000 % 1000, turbo % 1000);
#endif
  return version;
}

} // namespace

std::vector<decoder_version> decoder_versions() {
  return {{"zlib", zlibVersion()}, {"libpng", png_get_libpng_ver(nullptr)}, {"libjpeg", libjpeg_version()}};
}

} // namespace dlrun::data
