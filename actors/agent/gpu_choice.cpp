#include "actors/agent/gpu_choice.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::agent {
namespace {

constexpr std::size_t failures_max = 3;
/// A GPU that hangs is found out in 10 s, and its worker is there again a few seconds later: three
/// times take less than this.
constexpr auto period = std::chrono::seconds(60);

} // namespace

gpu_choice::gpu_choice(std::string host, const std::vector<int>& gpus)
    : host_{std::move(host)} {
  for (const int number : gpus) gpus_.push_back({.number = static_cast<std::uint32_t>(number)});
}

gpu_choice::known_gpu* gpu_choice::find(std::uint32_t gpu) {
  const auto found = std::ranges::find(gpus_, gpu, &known_gpu::number);
  return found == gpus_.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> gpu_choice::left() const {
  std::vector<std::uint32_t> all;
  for (const auto& one : gpus_)
    if (!one.is_avoided) all.push_back(one.number);
  return all;
}

std::optional<std::uint32_t> gpu_choice::take(std::uint32_t worker) {
  known_gpu* chosen = nullptr;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    auto& one = gpus_[(worker + i) % gpus_.size()];
    if (!one.is_avoided && (chosen == nullptr || one.workers < chosen->workers)) chosen = &one;
  }
  if (chosen == nullptr) return std::nullopt; // there are none: the last one is never avoided
  ++chosen->workers;
  return chosen->number;
}

void gpu_choice::give_back(std::uint32_t gpu) {
  if (auto* const known = find(gpu); known != nullptr && known->workers > 0) --known->workers;
}

std::optional<avoided_gpu> gpu_choice::on_failure(std::uint32_t gpu, const std::string& said,
                                                  protocol::time_point now) {
  auto* const known = find(gpu);
  if (known == nullptr || known->is_avoided) return std::nullopt;
  auto& failures = known->failures;
  failures.push_back(now);
  while (now - failures.front() > period) failures.pop_front();
  if (failures.size() < failures_max || left().size() == 1) return std::nullopt;
  known->is_avoided = true;
  const auto others = left();
  return avoided_gpu{
      gpu, host_,
      fmt::format("it failed {} times within {} s, the last time with '{}'; workers get GPU{} {}",
                  failures_max, period.count(), said, others.size() == 1 ? "" : "s",
                  fmt::join(others, ", "))};
}

} // namespace dlrun::agent
