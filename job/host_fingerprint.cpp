#include "job/host_fingerprint.hpp"

#include <fstream>
#include <sstream>

namespace dlrun::job {
namespace {

std::string newest_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) return "avx512_bf16";
  if (__builtin_cpu_supports("avx512vnni")) return "avx512_vnni";
  if (__builtin_cpu_supports("avx512bw")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

} // namespace

std::string cpu_model_from(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("model name")) continue;
    const auto value = line.find_first_not_of(": \t", line.find(':'));
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown";
}

host_fingerprint detect_host_fingerprint(std::uint32_t threads) {
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return {cpu_model_from(text.str()), newest_isa(), threads};
}

} // namespace dlrun::job
