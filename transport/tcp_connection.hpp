/// One connection of a tcp_server.
#pragma once

#include "transport/tcp_stream.hpp"
#include "transport/tcp_wire.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

namespace dlrun::transport::tcp {

/// The server's side of one connection: reads what comes, answers it. Used by one thread; never
/// blocks.
class connection {
public:
  using time_point = std::chrono::steady_clock::time_point;
  /// The segment that is offered under an id, or null.
  using finder = std::function<std::shared_ptr<const segment>(segment_id)>;

  /// `self` is the server's own address, `mine` a fresh nonce. The other end has `idle`, and 5 s at
  /// most, to show that it knows the token.
  connection(stream with, const run_token& token, const nonce& self, const nonce& mine,
             std::chrono::milliseconds idle, time_point now);

  int socket() const { return stream_.socket(); }
  /// What to poll for: POLLIN or POLLOUT.
  short wants() const { return is_sending() ? POLLOUT : POLLIN; }
  /// Whether there is something to go on with, whatever poll() says.
  bool is_ready() const { return !is_sending() && stream_.has_received(); }
  /// When it is to be given up unless it gets on; max() while it is the other end's turn to ask.
  time_point deadline() const { return deadline_; }

  /// Breaks it off: what was sent and not taken is forgotten, and not kept for who may never take
  /// it.
  void reset() { stream_.reset(); }

  /// Goes on as far as the socket lets it, but no longer than others can wait.
  /// @returns false when the connection is over.
  bool go_on(const finder& find, time_point now);

private:
  enum class stage { greeting, proving, serving };

  bool has_answer() const { return sent_ < small_.size() || from_; }
  bool is_sending() const { return has_answer() || stream_.has_unsent(); }
  bool receive(const finder& find);
  bool take_message(const finder& find);
  void greet();
  bool serve(const request& asked, const finder& find);
  bool send(time_point now);
  bool send_some(std::span<const std::byte> from, std::size_t& done, time_point now);
  void finish_part();
  std::vector<std::byte> read_marks() const;
  void say(const void* data, std::size_t size);

  stream stream_;
  run_token token_;
  nonce self_, mine_;
  std::chrono::milliseconds idle_;
  time_point deadline_;
  stage stage_ = stage::greeting;
  hello greeting_;

  std::vector<std::byte> in_; ///< of a message that has not come whole
  std::size_t wanted_ = sizeof(hello);

  std::vector<std::byte> small_; ///< messages and marks, to be sent before the values
  std::size_t sent_ = 0;
  std::shared_ptr<const segment> from_; ///< of values that are being sent; else null
  segment_part part_;
  std::vector<std::byte> marks_; ///< as they were before
  std::size_t values_sent_ = 0;
};

} // namespace dlrun::transport::tcp
