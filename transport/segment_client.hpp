/// segment_client: gets segments from the servers of other processes.
#pragma once

#include "transport/tensor_channel.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace dlrun::transport {

struct segment_client_options {
  run_token token;
  /// Fetches accepted and not yet answered; more are refused.
  std::size_t queue_max = 1024;
  /// Fetches on the wire at a time. Each holds a socket.
  std::size_t in_flight_max = 64;
  /// The largest segment that is mapped.
  std::size_t bytes_max = segment_bytes_max_default;
};

/// Fetches segments on its own thread, several at a time: a peer that hangs delays nobody else.
/// Thread-safe; callers never block.
class segment_client final : public segment_fetches {
public:
  static result<std::unique_ptr<segment_client>> start(segment_client_options options);
  ~segment_client() override;

  bool is_shared(std::string_view) const override { return true; }
  /// Maps it read-only, all of it: `part` does not matter.
  result<void> fetch(std::string address, segment_id id, std::size_t expected_bytes, const segment_part& part,
                     std::chrono::steady_clock::time_point deadline, callback done) override;
  result<void> connect_doorbell(std::string address, std::chrono::steady_clock::time_point deadline,
                                connected_callback done) override;

private:
  class loop;
  explicit segment_client(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
