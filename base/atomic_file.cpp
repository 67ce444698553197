#include "base/atomic_file.hpp"

#include "base/output_file.hpp"

namespace dlrun::base {

result<void> write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  return write_file_atomically(file, std::span{&content, 1});
}

result<void> write_file_atomically(const std::filesystem::path& file,
                                   std::span<const std::string_view> parts) {
  auto out = output_file::open(file);
  if (!out) return tl::unexpected(out.error());
  for (const auto& part : parts)
    if (auto written = out->write(part); !written) return written;
  return out->finish();
}

} // namespace dlrun::base
