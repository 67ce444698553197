#include "actors/agent/process/last_words.hpp"

#include "base/os_error.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace dlrun::agent {

result<base::unique_fd> make_last_words() {
  base::unique_fd fd(::memfd_create("dlrun:last-words", MFD_CLOEXEC));
  if (!fd) return base::fail_errno("cannot create the memory for a child's last words");
  return fd;
}

void leave_last_words(int fd, std::string_view text) {
  text = text.substr(0, last_words_bytes_max);
  [[maybe_unused]] const auto written = ::pwrite(fd, text.data(), text.size(), 0);
}

std::string read_last_words(int fd) {
  std::string text(last_words_bytes_max, '\0');
  const auto got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

} // namespace dlrun::agent
