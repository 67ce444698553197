/// A client that says nothing of itself.
#pragma once

#include "base/ipv4_address.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <sys/socket.h>

namespace dlrun::test {

/// @returns an invalid descriptor when nobody listens there.
inline base::unique_fd connect_to(const std::string& address, std::uint16_t port) {
  base::unique_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto to = base::parse_ipv4_address(address + ":" + std::to_string(port)).value();
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fd.reset();
  return fd;
}

} // namespace dlrun::test
