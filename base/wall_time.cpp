#include "base/wall_time.hpp"

#include <chrono>
#include <fmt/chrono.h>

namespace dlrun::base {

std::string wall_time() {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  const auto second = floor<seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(second)),
                     (now - second).count());
}

} // namespace dlrun::base
