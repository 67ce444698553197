/// A client that says nothing of itself.
#pragma once

#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>

namespace dlrun::test {

/// @returns an invalid descriptor when nobody listens there.
inline base::unique_fd connect_to(const char* address, std::uint16_t port) {
  base::unique_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fd.reset();
  return fd;
}

} // namespace dlrun::test
