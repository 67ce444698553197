#include "engine/cpu_level.hpp"

#include "engine/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlrun/check.hpp>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace dlrun::engine {
namespace {

constexpr const char* own_switch = "ONEDNN_MAX_CPU_ISA"; // oneDNN's; docs/decisions/0013

using named_isa = std::pair<std::string_view, dnnl::cpu_isa>;
constexpr std::array<named_isa, 8> isas{{{"sse4.1", dnnl::cpu_isa::sse41},
                                         {"avx", dnnl::cpu_isa::avx},
                                         {"avx2", dnnl::cpu_isa::avx2},
                                         {"avx2_vnni", dnnl::cpu_isa::avx2_vnni},
                                         {"avx512_core", dnnl::cpu_isa::avx512_core},
                                         {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
                                         {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16},
                                         {"avx512_core_amx", dnnl::cpu_isa::avx512_core_amx}}};

} // namespace

std::string instruction_set() {
  const auto used = dnnl::get_effective_cpu_isa();
  const auto* const found = std::ranges::find(isas, used, &named_isa::second);
  return found != isas.end() ? std::string{found->first}
                             : fmt::format("onednn-isa-{}", static_cast<int>(used));
}

result<void> hold_to_cpu_level(const std::string& level) {
  if (level.empty() || level == "auto") return {};
  const auto* const wanted = std::ranges::find(isas, level, &named_isa::first);
  DLRUN_CHECK(wanted != isas.end(), "cluster.cpu_level is '{}', which is no word of it", level);
  const bool has_switch = std::getenv(own_switch) != nullptr;
  if (!has_switch)
    dnnl::set_max_cpu_isa(wanted->second); // refused once it was asked; what it is then is below
  if (instruction_set() == level) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("cluster.cpu_level: {}, but this process computes with {}, on the processor '{}'{}: use "
                  "one that has {}, or begin a run with a level that all have",
                  level, instruction_set(), cpu_model(),
                  has_switch ? fmt::format(", as {} says", own_switch) : "", level));
}

} // namespace dlrun::engine
