/// segment_client: gets segments from the servers of other processes.
#pragma once

#include "transport/run_token.hpp"
#include "transport/segment.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
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

/// Fetches segments on its own thread, several at a time: a peer that hangs delays nobody else. Thread-safe;
/// callers never block.
class segment_client {
public:
  /// Called once for each accepted fetch, on the client's thread; must not block. It may call fetch().
  using callback = std::function<void(result<segment>)>;

  static result<std::unique_ptr<segment_client>> start(segment_client_options options);
  /// Ends all fetches with error_code::interrupted, then the thread. Not to be called from a callback.
  ~segment_client();

  /// Asks the server at `address` for `id`, which must be `expected_bytes` long, and maps it read-only.
  /// Errors the callback gets: timed_out at `deadline`; system when nobody listens there (its process is
  /// gone) or the OS refuses; fenced when the server belongs to another user or run; role_lost when it does
  /// not offer `id` (any more); protocol when the answer is anything a correct server does not send;
  /// interrupted at the client's end.
  /// @returns limit_exceeded when queue_max fetches are waiting: the callback is not called then.
  result<void> fetch(std::string address, segment_id id, std::size_t expected_bytes,
                     std::chrono::steady_clock::time_point deadline, callback done);

private:
  class loop;
  explicit segment_client(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
