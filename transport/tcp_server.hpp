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
  /// The secret of the run; who does not show to know it gets nothing.
  run_token token;
  /// Of this host, as others reach it: an IPv4 address in numbers. One that is not of the loopback
  /// interface needs `tls`.
  std::string listen = "127.0.0.1";
  /// Who connects needs a certificate of the same job, and all that is said is encrypted. Null: no
  /// TLS.
  std::shared_ptr<const security::tls_context> tls{};
  /// A connection that has not shown it for so long (5 s at most), or takes nothing of what it
  /// asked for, is dropped.
  std::chrono::milliseconds idle{10'000};
  /// Connections served at a time; more wait in the backlog of the listening socket.
  std::size_t connections_max = 2048;
  /// Segments offered at a time. Each is mapped once more, read-only.
  std::size_t offers_max = 4096;
};

/// Serves parts of segments on a port of its own, from its own thread. Both ends show that they
/// know the run's token, which does not travel. What was written to while it was sent is told as
/// such.
class tcp_server final : public segment_offers {
public:
  /// @returns bad_usage for an address that cannot be listened on; system when a socket, an eventfd
  /// or a thread cannot be had.
  static result<std::unique_ptr<tcp_server>> start(tcp_server_options options);
  ~tcp_server() override;

  const std::string& address() const override;
  result<segment_id> offer(const segment& what) override;
  void withdraw(segment_id id) override;
  /// offer() under an id that the caller has, and gives to nothing else.
  result<void> offer_as(segment_id id, const segment& what);
  /// The same for memory that `owner` keeps as it is. What had that id is offered no more.
  result<void> offer_memory_as(segment_id id, std::span<const std::byte> memory,
                               std::shared_ptr<const void> owner);

private:
  class loop;
  explicit tcp_server(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
