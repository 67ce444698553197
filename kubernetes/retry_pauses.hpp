/// retry_pauses: how long a client waits before it asks again.
#pragma once

#include <chrono>
#include <optional>

namespace dlrun::kubernetes {

/// Full jitter: the n-th pause is anything up to 0.1 s * 2^n, at most up to 10 s, so that clients
/// that failed together do not come back together. What the server asks for is a lower bound.
class retry_pauses {
public:
  static constexpr std::chrono::milliseconds first_max{100}, longest{10'000};

  /// @param chance in [0, 1); `asked` by the server (Retry-After)
  std::chrono::milliseconds next(double chance, std::optional<std::chrono::seconds> asked);

private:
  std::chrono::milliseconds max_ = first_max;
};

} // namespace dlrun::kubernetes
