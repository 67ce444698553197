#include "kubernetes/pod_memory.hpp"

#include "kubernetes/json_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace dlrun::kubernetes {
namespace {

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
constexpr std::uint64_t bytes_max = std::uint64_t{1} << 63;

} // namespace

std::optional<std::uint64_t> memory_bytes(const std::string& text) {
  std::uint64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc{}) return std::nullopt;
  const std::string unit{at, end};
  if (unit.empty()) return number <= bytes_max ? std::optional{number} : std::nullopt;
  const auto power = std::string{"KMGT"}.find(unit.front());
  if (unit.size() != 2 || unit.back() != 'i' || power == std::string::npos) return std::nullopt;
  const auto shift = 10 * (power + 1);
  return number <= bytes_max >> shift ? std::optional{number << shift} : std::nullopt;
}

std::string memory_text(std::uint64_t bytes) { return fmt::format("{}Mi", (bytes + mebi - 1) / mebi); }

std::uint64_t grown_memory(std::uint64_t bytes, std::uint64_t max) {
  if (bytes >= max) return bytes;
  return bytes / 2 < max - bytes ? bytes + bytes / 2 : max;
}

std::uint64_t memory_max_of(const nlohmann::json& pod_template) {
  const auto& annotations = member(member(pod_template, "metadata"), "annotations");
  return memory_bytes(text_in(annotations, memory_max_annotation)).value_or(0);
}

} // namespace dlrun::kubernetes
