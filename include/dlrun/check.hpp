/// DLRUN_CHECK: an invariant that stays on in release builds.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <string>

namespace dlrun::detail {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const std::string& why) {
  fmt::print(stderr, "dlrun: broken invariant at {}:{}: {} - {}\n", file, line, condition, why);
  std::fflush(stderr);
  std::abort();
}
} // namespace dlrun::detail

/// Aborts the process when `condition` does not hold: the supervisor then replaces the process,
/// which is safer than to continue in an impossible state. `...` is a fmt format string with its
/// arguments, which says why the condition must hold.
#define DLRUN_CHECK(condition, ...)                                                                          \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      ::dlrun::detail::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__));               \
  } while (false)
