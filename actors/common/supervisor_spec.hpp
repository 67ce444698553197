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
    infinity,    ///< Asked to end and waited for; meant for children that are supervisors.
  };
  kind how = kind::timeout;
  milliseconds patience{5000};

  static shutdown_policy brutal_kill() { return {kind::brutal_kill, milliseconds{0}}; }
  static shutdown_policy timeout(milliseconds patience) { return {kind::timeout, patience}; }
  static shutdown_policy infinity() { return {kind::infinity, milliseconds{0}}; }
};

struct child_spec {
  /// Unique in its supervisor; appears in reasons.
  std::string id;
  restart_type restart = restart_type::permanent;
  shutdown_policy shutdown{};
  /// Its end for good counts for supervisor_options::automatic_shutdown. Not for permanent
  /// children.
  bool significant = false;
};

/// Who is restarted when one child has to be.
enum class strategy : std::uint8_t {
  one_for_one,  ///< That child.
  one_for_all,  ///< All: the others are stopped in reverse order first.
  rest_for_one, ///< That child and those after it in start order, which are stopped in reverse order first.
};

/// Whether the supervisor stops when significant children have ended for good.
enum class auto_shutdown : std::uint8_t { never, any_significant, all_significant };

/// Pause before the restart of a child that ended before it had settled (child_exit::settled),
/// doubled with each such end in a row. One that had settled is started again at once. Not in OTP.
/// Off when `first` is 0. A failure that repeats still reaches the intensity when `max` is at most
/// period / (intensity + 1).
struct restart_delay {
  milliseconds first{0};
  milliseconds max{30'000};
};

struct supervisor_options {
  strategy restarts = strategy::one_for_one;
  /// More than `intensity` restarts within `period` (both ends included) and the supervisor gives
  /// up.
  std::size_t intensity = 1;
  milliseconds period{5000};
  auto_shutdown automatic_shutdown = auto_shutdown::never;
  restart_delay delay{};
};

/// @returns bad_usage naming everything that is wrong: empty or repeated ids, negative times, a
/// period of 0, significant children that are permanent or have no automatic shutdown to count for.
result<void> validate(const supervisor_options& options, const std::vector<child_spec>& children);

/// "permanent", "one_for_all", ...
std::string to_string(restart_type type);
std::string to_string(strategy which);

} // namespace dlrun::supervision
