/// How children are to be supervised: the words of Erlang/OTP's supervisor(3), release 25.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <string>
#include <vector>

namespace dlrun::supervision {

/// Monotonic; enters decisions as an argument only.
using time_point = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

/// When a child that ended by itself is started again.
enum class restart_type : std::uint8_t {
  permanent, ///< Always.
  transient, ///< After an abnormal end only.
  temporary, ///< Never; its spec is forgotten when it ends.
};

/// How a child is stopped.
struct shutdown_policy {
  enum class kind : std::uint8_t {
    brutal_kill, ///< Killed without a word.
    timeout,     ///< Asked to end, killed when it has not after `patience`.
  };
  kind how = kind::timeout;
  milliseconds patience{5000};

  static shutdown_policy brutal_kill() { return {kind::brutal_kill, milliseconds{0}}; }
  static shutdown_policy timeout(milliseconds patience) { return {kind::timeout, patience}; }
};

struct child_spec {
  /// Unique in its supervisor; appears in reasons.
  std::string id;
  restart_type restart = restart_type::permanent;
  shutdown_policy shutdown{};
};

/// Pause before a restart, doubled with each restart of the same child until it has been up for the whole
/// period of the restart intensity. Not in OTP. Off when `first` is 0.
struct restart_delay {
  milliseconds first{0};
  milliseconds max{30'000};
};

struct supervisor_options {
  /// More than `intensity` restarts within `period` (both ends included) and the supervisor gives up.
  std::size_t intensity = 1;
  milliseconds period{5000};
  restart_delay delay{};
};

/// @returns bad_usage naming everything that is wrong: empty or repeated ids, negative times, a period of 0.
result<void> validate(const supervisor_options& options, const std::vector<child_spec>& children);

} // namespace dlrun::supervision
