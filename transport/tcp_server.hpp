/// tcp_server: sends parts of this process's segments to other processes.
#pragma once

#include "transport/tensor_channel.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace dlrun::transport {

struct tcp_server_options {
  /// The secret of the run; who does not show to know it gets nothing.
  run_token token;
  /// A connection that has not shown it for so long, or takes nothing of what it asked for, is
  /// dropped.
  std::chrono::milliseconds idle{10'000};
  /// Connections served at a time; more wait in the backlog of the listening socket.
  std::size_t connections_max = 2048;
  /// Segments offered at a time. Each is mapped once more, read-only.
  std::size_t offers_max = 4096;
};

/// Serves parts of segments on a port of the loopback interface, from its own thread. Both ends
/// show that they know the run's token, which does not travel. What was written to while it was
/// sent is told as such.
class tcp_server final : public segment_offers {
public:
  /// @returns system when a socket, an eventfd or a thread cannot be had.
  static result<std::unique_ptr<tcp_server>> start(tcp_server_options options);
  ~tcp_server() override;

  const std::string& address() const override;
  result<segment_id> offer(const segment& what) override;
  void withdraw(segment_id id) override;

private:
  class loop;
  explicit tcp_server(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
