/// segment_server: hands the segments of this process to other processes of the host.
#pragma once

#include "transport/tensor_channel.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace dlrun::transport {

struct segment_server_options {
  /// The secret of the run; requests that do not know it are refused.
  run_token token;
  /// A connection that has sent no request for this long is dropped.
  std::chrono::milliseconds idle{2000};
  /// Connections served at a time; more wait in the backlog of the listening socket.
  std::size_t connections_max = 64;
  /// Segments offered at a time. Each holds a descriptor.
  std::size_t offers_max = 4096;
};

/// Hands out descriptors of segments over an abstract Unix socket with a random name, from its own
/// thread. Only processes of the same user that know the run's token get any. It leaves nothing in
/// the file system, even after kill -9. Thread-safe. No call blocks on a peer.
class segment_server final : public segment_offers {
public:
  /// @returns system when a socket, an eventfd or a thread cannot be had.
  static result<std::unique_ptr<segment_server>> start(segment_server_options options);
  /// Stops serving. Segments that peers have mapped stay theirs.
  ~segment_server() override;

  const std::string& address() const override;
  /// Keeps a descriptor of its own.
  result<segment_id> offer(const segment& what) override;
  /// Who has mapped it keeps it.
  void withdraw(segment_id id) override;
  void on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) override;

private:
  class loop;
  explicit segment_server(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
