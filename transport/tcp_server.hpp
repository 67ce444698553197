/// tcp_server: sends parts of this process's segments to other processes.
#pragma once

#include "security/tls_context.hpp"
#include "transport/tensor_channel.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace dlrun::transport {

struct tcp_server_options {
  /// The secret of the run; a peer that does not prove to know it gets nothing.
  run_token token;
  /// Of this host, as others reach it: an IPv4 address in numbers. One that is not of the loopback
  /// interface needs `tls`.
  std::string listen = "127.0.0.1";
  /// Peers need a certificate of the same job, and everything is encrypted. Null: no TLS.
  std::shared_ptr<const security::tls_context> tls{};
  /// A connection is dropped that has not proved to know the token for this long (5 s at most), or
  /// that reads nothing of what it asked for.
  std::chrono::milliseconds idle{10'000};
  /// Connections served at a time; more wait in the backlog of the listening socket.
  std::size_t connections_max = 2048;
  /// Segments offered at a time. Each is mapped once more, read-only.
  std::size_t offers_max = 4096;
};

/// Sends copies of parts of segments from a port of its own, on its own thread. Both ends prove
/// that they know the run's token, which does not travel. The reply says when a part was written to
/// while it was sent. Thread-safe.
class tcp_server final : public segment_offers {
public:
  /// @returns bad_usage for an address that cannot be listened on; system when a socket, an eventfd
  /// or a thread cannot be had.
  static result<std::unique_ptr<tcp_server>> start(tcp_server_options options);
  ~tcp_server() override;

  const std::string& address() const override;
  result<segment_id> offer(const segment& what) override;
  void withdraw(segment_id id) override;
  /// As offer(), under an id that the caller gives to nothing else.
  result<void> offer_as(segment_id id, const segment& what);
  /// As offer_as(), for memory that `owner` keeps alive and unchanged. Replaces what had that id.
  result<void> offer_memory_as(segment_id id, std::span<const std::byte> memory,
                               std::shared_ptr<const void> owner);

private:
  class loop;
  explicit tcp_server(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
