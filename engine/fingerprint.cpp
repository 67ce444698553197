#include "engine/fingerprint.hpp"

#include "engine/cpu_level.hpp"
#include "kernels/cpu/onednn.hpp"

#include <algorithm>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace dlrun::engine {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown";
}

std::string cpu_caches() {
  const auto size = [](int level) { return std::max(0L, ::sysconf(level)) / 1024; };
  return fmt::format("L1d {} KiB, L2 {} KiB, L3 {} KiB", size(_SC_LEVEL1_DCACHE_SIZE),
                     size(_SC_LEVEL2_CACHE_SIZE), size(_SC_LEVEL3_CACHE_SIZE));
}

std::string onednn_version() {
  const auto* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string compiler_version() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::vector<fingerprint_part> processor_parts(int threads) {
  const char* const products = kernels::cpu::is_avx2_the_widest() ? ", own products" : "";
  return {{"compiler", compiler_version()},
          {"oneDNN", fmt::format("oneDNN {}", onednn_version())},
          {"processor", cpu_model()},
          {"caches", cpu_caches()},
          {"instruction set", instruction_set() + products},
          {"threads of a worker", fmt::format("{} threads", threads)}};
}

std::string to_line(const std::vector<fingerprint_part>& parts) {
  std::string line;
  for (const auto& part : parts) line += (line.empty() ? "" : " | ") + part.value;
  return line;
}

std::string processor_fingerprint(int threads) { return to_line(processor_parts(threads)); }

} // namespace dlrun::engine
