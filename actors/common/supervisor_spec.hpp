/// How children are to be supervised: the words of Erlang/OTP's supervisor(3), release 25.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::supervision {

/// Monotonic; enters decisions as an argument only.
using time_point = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

/// When a child that ended by itself is started again.
enum class restart_type : std::uint8_t {
  permanent, ///< Always.
  temporary, ///< Never.
};

struct child_spec {
  /// Unique in its supervisor; appears in reasons.
  std::string id;
  restart_type restart = restart_type::permanent;
  /// A child that is to stop is asked to, and killed when it has not after this long.
  milliseconds patience{5000};
  /// In place of restart_delay::max. Only for one whose ends do not count (child_exit::counts).
  std::optional<milliseconds> delay_max{};
};

/// Pause before the restart of a child that ended before it had settled (child_exit::settled),
/// doubled with each such end in a row. One that had settled is started again at once. Not in OTP.
/// Off when `first` is 0. A failure that repeats still reaches the intensity when `max` is at most
/// period / (intensity + 1).
struct restart_delay {
  milliseconds first{0};
  milliseconds max{30'000};
};

struct supervisor_options {
  /// More than `intensity` restarts within `period` (both ends included) and the supervisor gives
  /// up.
  std::size_t intensity = 1;
  milliseconds period{5000};
  restart_delay delay{};
};

/// @returns bad_usage naming everything that is wrong: empty or repeated ids, negative times, a
/// period of 0.
result<void> validate(const supervisor_options& options, const std::vector<child_spec>& children);

} // namespace dlrun::supervision
