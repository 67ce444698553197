#include "weights/initial_weights.hpp"

#include "base/sha256.hpp"
#include "weights/model_weights.hpp"

#include <fmt/format.h>

namespace dlrun::weights {

result<initial_weights> open_initial_weights(const spec::TrainSpec& train,
                                             const engine::parameter_layout& layout) {
  auto file = safetensors_file::open(train.init_from());
  if (!file) return tl::unexpected(file.error());
  if (auto fits = check_fits(*file, layout, wanted_fit(train)); !fits) return tl::unexpected(fits.error());
  if (auto finite = check_finite(*file, layout); !finite) return tl::unexpected(finite.error());
  auto digest = base::sha256_of_file(file->fd(), file->name());
  if (!digest) return tl::unexpected(digest.error());
  if (!train.has_init_sha256() || train.init_sha256() == *digest)
    return initial_weights{std::move(*file), std::move(*digest)};
  return fail(
      error_code::bad_data,
      fmt::format("{} has the SHA-256 {}, train.init_sha256 says {}: put the right file there, or say "
                  "where it is with --set train.init_from=FILE",
                  file->name(), *digest, train.init_sha256()));
}

} // namespace dlrun::weights
