#include "actors/common/fingerprint.hpp"

#include "engine/cpu_level.hpp"

#include <fmt/core.h>
#include <utility>

namespace dlrun::common {

std::string dlrun_version() { return DLRUN_VERSION; }

build_facts build_here(int threads_per_worker) {
  auto parts = engine::processor_parts(threads_per_worker);
  parts.insert(parts.begin(), {"dlrun", fmt::format("dlrun {}", dlrun_version())});
  auto here = parts;
  here.front().value = fmt::format("dlrun {}", dlrun_build());
  auto line = engine::to_line(here);
  return {.dlrun = dlrun_version(),
          .onednn = engine::onednn_version(),
          .compiler = engine::compiler_version(),
          .cpu_model = engine::cpu_model(),
          .instruction_set = engine::instruction_set(),
          .parts = std::move(parts),
          .fingerprint = std::move(line)};
}

} // namespace dlrun::common
