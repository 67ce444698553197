/// exit_report: how a child process ended.
#pragma once

#include <string>
#include <sys/types.h>

namespace dlrun::agent {

/// How a child ended.
struct exit_report {
  pid_t pid = -1;
  /// True: ended by a signal, false: by exit().
  bool signaled = false;
  int code_or_signal = 0;
};

/// For people: "exited with code 3", "killed by signal 9 (KILL)".
std::string describe(const exit_report& report);

} // namespace dlrun::agent
