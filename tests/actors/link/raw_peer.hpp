/// A process at the other end of a control connection that may say anything.
#pragma once

#include "actors/link/frame.hpp"
#include "actors/link/greeting.hpp"
#include "base/unique_fd.hpp"

#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

namespace dlrun::test {

class raw_peer {
public:
  explicit raw_peer(const std::string& address) {
    sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
    address.copy(to.sun_path + 1, sizeof to.sun_path - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0) socket_.reset();
  }

  bool is_connected() const { return static_cast<bool>(socket_); }

  bool send(std::span<const char> bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  template <class Value>
  bool send_value(const Value& value) const {
    return send({reinterpret_cast<const char*>(&value), sizeof value});
  }
  bool send_frame(const link::frame_header& header, std::span<const char> payload = {}) const {
    std::vector<char> bytes;
    return link::append_frame(bytes, header, payload) && send(bytes);
  }

  /// Nothing when the other end closes first.
  std::optional<link::welcome> read_welcome() const {
    link::welcome said;
    const auto got = ::recv(socket_.get(), &said, sizeof said, MSG_WAITALL);
    return got == sizeof said ? std::optional{said} : std::nullopt;
  }
  /// Waits until the other end has closed, reading on.
  void wait_for_the_end() const {
    char bytes[4096];
    while (::recv(socket_.get(), bytes, sizeof bytes, 0) > 0) {
    }
  }
  bool greet(const transport::run_token& token, const link::peer_id& from, const link::peer_id& to) const {
    if (!send_value(link::make_hello(token, from, to))) return false;
    const auto said = read_welcome();
    return said && said->status == link::greeting_status::welcome;
  }

private:
  base::unique_fd socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

} // namespace dlrun::test
