#include "cli/standard_streams.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

/// errno of the first write to stdout that failed: the stream itself only knows that one did.
std::atomic<int> first_failure = 0;

void note_failure(std::FILE* to) {
  if (to == stdout && first_failure == 0) first_failure = errno;
}

} // namespace

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free, which is this one. Children get it too: they are given
    // others.
    [[maybe_unused]] const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void put(std::FILE* to, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), to) != text.size()) note_failure(to);
}

void flush(std::FILE* to) {
  if (std::fflush(to) != 0) note_failure(to);
}

int unwritten_output() {
  flush(stdout);
  return std::ferror(stdout) != 0 && first_failure == 0 ? EIO : first_failure.load();
}

result<void> flush_output() {
  const int why = unwritten_output();
  if (why == 0) return {};
  return fail(error_code::system, fmt::format("cannot write the output: {}", std::strerror(why)));
}

void forget_output() {
  ::__fpurge(stdout);
  std::clearerr(stdout);
  first_failure = 0;
}

} // namespace dlrun::cli
