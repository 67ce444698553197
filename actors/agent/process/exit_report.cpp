#include "actors/agent/process/exit_report.hpp"

#include <csignal>
#include <cstring>
#include <fmt/core.h>

namespace dlrun::agent {

std::string describe(const exit_report& report) {
  if (!report.signaled) return fmt::format("exited with code {}", report.code_or_signal);
  const char* name = ::sigabbrev_np(report.code_or_signal);
  return fmt::format("killed by signal {} ({})", report.code_or_signal, name == nullptr ? "?" : name);
}

} // namespace dlrun::agent
