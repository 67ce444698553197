/// What the agent of another host is given at its start, as bytes.
#pragma once

#include "proto/host_bundle.pb.h"

#include <cstddef>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::runtime {

/// A specification may have 16 MiB, and is there twice.
inline constexpr std::size_t bundle_bytes_max = std::size_t{64} << 20;

/// A line "dlrun-host-bundle VERSION BYTES", then the message.
std::string written_bundle(const bootstrap::HostBundle& bundle);

/// Reads one from a descriptor; more than it says is not read.
/// @returns bad_usage when it is none, or one of another version of dlrun: both versions are named.
result<bootstrap::HostBundle> read_bundle(int fd);

} // namespace dlrun::runtime
