#include "actors/common/fingerprint.hpp"

#include "engine/fingerprint.hpp"

#include <fmt/core.h>

namespace dlrun::common {

std::string dlrun_version() { return DLRUN_VERSION; }

std::string host_fingerprint(int threads_per_worker) {
  return fmt::format("dlrun {} | {}", dlrun_version(), engine::processor_fingerprint(threads_per_worker));
}

} // namespace dlrun::common
