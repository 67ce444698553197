/// Opening or writing what another process may still hold, or a full disk has no room for.
#pragma once

#include <chrono>
#include <dlrun/error.hpp>
#include <functional>
#include <thread>

namespace dlrun::common {

/// For locks of processes that were killed just now, on a busy machine.
inline constexpr std::chrono::seconds patience_with_the_dying{5};

/// Is told of a full disk, on the thread that waits for it. With neither function nobody waits.
struct full_disk_watcher {
  /// Called now and then while the disk is full, with what it says. @returns whether to go on
  /// waiting.
  std::function<bool(const error&)> while_full;
  /// Called once when it takes writes again.
  std::function<void()> when_over;
};

/// Calls `attempt`, which returns a result, until it succeeds. While it says in_use, for
/// `patience`: the process that had it before is being ended, and its lock goes with it. While it
/// says disk_full, as long as `watcher` wants, each `after_full`. Blocks. @returns what `attempt`
/// returned last.
template <class Attempt>
auto try_patiently(std::chrono::milliseconds patience, const full_disk_watcher& watcher,
                   const Attempt& attempt,
                   std::chrono::milliseconds after_full = std::chrono::milliseconds(500)) {
  constexpr auto after_in_use = std::chrono::milliseconds(20);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (bool was_full = false;;) {
    auto answer = attempt();
    if (answer) {
      if (was_full && watcher.when_over) watcher.when_over();
      return answer;
    }
    const auto& why = answer.error();
    if (why.code == error_code::in_use && std::chrono::steady_clock::now() <= give_up) {
      std::this_thread::sleep_for(after_in_use);
    } else if (why.code == error_code::disk_full && watcher.while_full && watcher.while_full(why)) {
      was_full = true;
      std::this_thread::sleep_for(after_full);
    } else {
      return answer;
    }
  }
}

} // namespace dlrun::common
