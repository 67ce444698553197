/// The libraries that decode files.
#pragma once

#include <string>
#include <vector>

namespace dlrun::data {

struct decoder_version {
  std::string library; ///< "zlib"
  std::string version; ///< of the one in use, as it says itself
};
/// Of zlib, libpng and libjpeg.
std::vector<decoder_version> decoder_versions();

} // namespace dlrun::data
