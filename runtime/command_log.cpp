#include "runtime/command_log.hpp"

#include "base/unique_fd.hpp"
#include "base/utf8.hpp"
#include "base/write_all.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t line_bytes_max = 4096; // of what agents say most names files

std::uintmax_t size_of(int fd) {
  const auto end = ::lseek(fd, 0, SEEK_END);
  return end < 0 ? 0 : static_cast<std::uintmax_t>(end);
}

/// What the file has of these bytes.
std::string part_of(int fd, std::uintmax_t from, std::uintmax_t bytes) {
  std::string part(bytes, '\0');
  const auto got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(from));
  part.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return part;
}

} // namespace

std::string last_line(const std::filesystem::path& file, std::uintmax_t from) {
  const base::unique_fd log{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!log) return "";
  const auto size = size_of(log.get());
  if (size <= from) return "";
  const auto bytes = std::min(size - from, command_log_end_bytes);
  auto text = part_of(log.get(), size - bytes, bytes);
  while (text.ends_with('\n')) text.pop_back();
  return base::printable(text.substr(text.rfind('\n') + 1), line_bytes_max);
}

std::uintmax_t shorten_log(const std::filesystem::path& file, std::uintmax_t from) {
  std::error_code why;
  const auto looked_at = std::filesystem::file_size(file, why);
  if (why || looked_at <= command_log_bytes_max) return from;
  const base::unique_fd log{::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC)};
  const auto size = log ? size_of(log.get()) : 0;
  if (size <= command_log_bytes_max) return from;
  const auto last = part_of(log.get(), size - command_log_end_bytes, command_log_end_bytes);
  if (::ftruncate(log.get(), static_cast<off_t>(command_log_end_bytes)) != 0) return from;
  const auto note = fmt::format("\n[{} bytes are left out here]\n", size - 2 * command_log_end_bytes);
  static_cast<void>(base::write_all(log.get(), note + last)); // on a full disk the rest is lost
  return std::min<std::uintmax_t>(from, command_log_end_bytes);
}

} // namespace dlrun::runtime
