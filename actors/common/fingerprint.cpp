#include "actors/common/fingerprint.hpp"

#include "engine/fingerprint.hpp"

#include <fmt/core.h>

namespace dlrun::common {

std::string dlrun_version() { return DLRUN_VERSION; }

build_facts build_here(int threads_per_worker) {
  return {.dlrun = dlrun_version(),
          .onednn = engine::onednn_version(),
          .compiler = engine::compiler_version(),
          .cpu_model = engine::cpu_model(),
          .instruction_set = engine::instruction_set(),
          .fingerprint = fmt::format("dlrun {} | {}", dlrun_version(),
                                     engine::processor_fingerprint(threads_per_worker))};
}

} // namespace dlrun::common
