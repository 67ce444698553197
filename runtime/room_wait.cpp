#include "runtime/room_wait.hpp"

#include "actors/common/patience.hpp"

#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace dlrun::runtime {
namespace {

constexpr auto between_attempts = std::chrono::milliseconds(100);

/// Why to wait no longer; nothing to go on.
std::optional<std::string> end_wanted(run_observer& observer, const std::function<bool()>& is_stopped) {
  if (is_stopped()) return "stopped by 'dlrun stop'";
  const auto wish = observer.asked_to_stop();
  if (!wish) return std::nullopt;
  if (wish->leaves_hosts && wish->end_now) wish->end_now();
  return wish->reason;
}

} // namespace

file_writing writing_once() {
  return [](const auto& write) { return write(); };
}

file_writing writing_with_patience(run_observer& observer, std::function<bool()> is_stopped) {
  return [&observer, is_stopped = std::move(is_stopped)](const auto& write) -> result<void> {
    bool is_told = false;
    std::optional<std::string> ended;
    const common::full_disk_watcher watcher{
        .while_full =
            [&](const error& why) {
              if (!std::exchange(is_told, true))
                observer.waits(
                    fmt::format("the disk is full: {}; the run waits until there is room", why.message));
              ended = end_wanted(observer, is_stopped);
              return !ended;
            },
        .when_over = [&] { observer.waits("there is room on the disk again: the run goes on"); }};
    auto written = common::try_patiently(std::chrono::milliseconds(0), watcher, write, between_attempts);
    if (ended) return fail(error_code::interrupted, *ended);
    return written;
  };
}

} // namespace dlrun::runtime
