/// How a device is waited for.
#pragma once

#include <chrono>
#include <cstdint>

namespace dlrun::kernels::cuda {

/// Decides, between two looks at a device, what to do until the next. Time enters as an argument.
class patience {
public:
  using time_point = std::chrono::steady_clock::time_point;

  enum class verdict : std::uint8_t {
    look_again, ///< at once: a small step is done sooner than a sleeping thread wakes up
    sleep,      ///< for `nap`
    give_up     ///< nothing moved for `longest`: no kernel of a training takes that long
  };
  static constexpr std::chrono::microseconds eager{100}; ///< for so long it is looked at once
  static constexpr std::chrono::microseconds nap{50};
  static constexpr std::chrono::seconds longest{10};

  explicit patience(time_point began)
      : began_(began)
      , moved_(began) {}

  /// `moved`: whether the device is further than at the last look.
  verdict next(time_point now, bool moved);

private:
  time_point began_, moved_;
};

} // namespace dlrun::kernels::cuda
