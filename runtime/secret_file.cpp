#include "runtime/secret_file.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t secret_file_bytes_max = 4096;

/// @param what it holds, parse: of its text
template <class Secret>
result<Secret> read_secret(const std::string& file, std::string_view what,
                           result<Secret> (*parse)(std::string_view)) {
  const base::unique_fd opened{file == "-" ? ::dup(STDIN_FILENO)
                                           : ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  const auto name = file == "-" ? std::string{"the standard input"} : fmt::format("'{}'", file);
  if (!opened)
    return fail(error_code::bad_usage, fmt::format("the {} cannot be read from {}: {}", what, name,
                                                   std::generic_category().message(errno)));
  struct stat about {};
  if (file != "-" && ::fstat(opened.get(), &about) == 0 && !S_ISREG(about.st_mode))
    return fail(error_code::bad_usage,
                fmt::format("{} is no file: the {} is read from a file, or with '-' from the standard input",
                            name, what));
  if (::fstat(opened.get(), &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & S_IRWXO) != 0)
    return fail(error_code::bad_usage,
                fmt::format("everybody on this host may read {}, and whoever has the {} joins the job: "
                            "'chmod 600' it, or better make another {}",
                            name, what, what));
  std::array<char, secret_file_bytes_max> text{};
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size();) {
    got = ::read(opened.get(), text.data() + size, text.size() - size);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  auto secret = parse({text.data(), size});
  ::explicit_bzero(text.data(), text.size());
  if (!secret) return fail(secret.error().code, fmt::format("{}: {}", name, secret.error().message));
  return secret;
}

} // namespace

result<agent::join_token> read_token_file(const std::string& file) {
  return read_secret(file, "token", &agent::parse_token);
}

result<agent::join_key> read_key_file(const std::string& file) {
  return read_secret(file, "key", &agent::join_key::parse);
}

} // namespace dlrun::runtime
