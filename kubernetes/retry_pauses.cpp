#include "kubernetes/retry_pauses.hpp"

#include <algorithm>

namespace dlrun::kubernetes {

std::chrono::milliseconds retry_pauses::next(double chance, std::optional<std::chrono::seconds> asked) {
  const std::chrono::milliseconds pause{
      static_cast<std::chrono::milliseconds::rep>(static_cast<double>(max_.count()) * chance)};
  max_ = std::min(2 * max_, longest);
  return pause + std::chrono::milliseconds{asked.value_or(std::chrono::seconds{0})};
}

} // namespace dlrun::kubernetes
