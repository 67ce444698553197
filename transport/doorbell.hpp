/// doorbell: how two processes of one host tell each other that something lies ready in a segment.
#pragma once

#include "base/unique_fd.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <utility>

namespace dlrun::transport {

/// Packets are small: they say what lies where, they do not carry it.
inline constexpr std::size_t doorbell_packet_bytes_max = 256;

/// One end of a connection by which a thread wakes a thread of another process. It keeps packets
/// and their order (AF_UNIX, SOCK_SEQPACKET). segment_fetches::connect_doorbell() makes one end,
/// segment_offers::on_doorbell() gets the other: both run as one user and know the run's token. It
/// is the shortest way between two such threads: the waiter sleeps in the kernel, and no third
/// thread takes part. Packets may be lost, since one that cannot be sent at once is dropped: users
/// must repeat by other means what matters. Thread-safe.
class doorbell {
public:
  explicit doorbell(base::unique_fd socket)
      : socket_(std::move(socket)) {}

  /// Two ends that are connected. @returns system when the OS refuses.
  static result<std::pair<std::unique_ptr<doorbell>, std::unique_ptr<doorbell>>> pair();

  /// Sends a packet of 1 to doorbell_packet_bytes_max bytes. Never blocks.
  /// @returns false when it cannot be sent now, or the other end is gone.
  bool ring(std::span<const std::byte> packet) const;

  enum class outcome { packet, nothing, closed };
  struct taken {
    outcome what = outcome::nothing;
    std::span<const std::byte> packet; ///< of `into`
  };
  /// Takes the next packet, if there is one, into `into`. Never blocks. A packet that is longer
  /// than `into` closes the connection, as no correct peer sends one.
  taken take(std::span<std::byte> into) const;

  /// To wait for packets with poll() or epoll.
  int fd() const { return socket_.get(); }

private:
  base::unique_fd socket_;
};

} // namespace dlrun::transport
