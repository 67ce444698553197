/// What a parent tells a child at its start, in bytes, out of sight of argv.
#pragma once

#include "base/unique_fd.hpp"

#include <csignal>
#include <cstddef>
#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::agent {

/// The option that precedes the descriptor's number in the child's arguments.
inline constexpr std::string_view bootstrap_option = "--bootstrap-fd";
/// A specification that names 65,536 columns, twice, takes 5 MiB.
inline constexpr std::size_t bootstrap_bytes_max_default = std::size_t{64} << 20;

/// By which a parent ends a child in order, at once. SIGTERM is for everybody: a worker takes it
/// for a notice that its host goes away.
inline constexpr int end_signal = SIGUSR1;
/// Exit code of a child that had a SIGTERM and ended by it in order, as shells show such an end.
inline constexpr int left_code = 128 + SIGTERM;

/// A memfd that holds `bytes` and can no longer be changed by anyone. Who reads it as a stream
/// begins with the first byte.
result<base::unique_fd> make_bootstrap(std::string_view bytes);

/// The child's side: reads all of it and closes `fd`.
/// @returns bad_usage when `fd` is not such a memfd, limit_exceeded above `bytes_max`.
result<std::string> read_bootstrap(int fd, std::size_t bytes_max = bootstrap_bytes_max_default);

} // namespace dlrun::agent
