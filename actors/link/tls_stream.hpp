/// One TLS connection to another host, as a stream of this one.
#pragma once

#include "base/unique_fd.hpp"
#include "security/tls_session.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace dlrun::link {

/// Passes bytes between a TCP socket, in TLS, and one end of a pair of local sockets, plain. Never
/// blocks: its owner waits for what it watches, and serves it. What one side does not take, the
/// other is not asked for: at most 256 KiB wait here. One thread at a time.
class tls_stream {
public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state : std::uint8_t { begins, open, over };

  /// @param socket does not block; of a client it may still connect
  /// @param deadline by which the peer has to show who it is
  tls_stream(base::unique_fd socket, security::tls_session session, time_point deadline);

  state now() const { return state_; }
  time_point deadline() const { return state_ == state::begins ? deadline_ : time_point::max(); }
  /// Why it is over, in words.
  const error& why() const { return why_; }
  /// Who the peer is, once it has shown it.
  const security::certificate_name& peer() const { return session_.peer(); }
  /// The local end, once the stream is open. To be called once.
  base::unique_fd take_local_end() { return std::move(local_end_); }

  /// What to wait for: the TCP socket, and the local one, -1 while there is none.
  int wire() const { return wire_.get(); }
  int inside() const { return inside_ ? inside_.get() : -1; }
  /// Events of poll(); 0: nothing, not even its end, which would be told for ever.
  short wire_events() const;
  short inside_events() const;
  /// What happened there.
  void serve(short wire, short inside, time_point now);
  /// It is over, for that reason.
  void end(error why);

private:
  void hear_wire();
  void hear_inside();
  void tell_wire();
  void tell_inside();
  void open();

  base::unique_fd wire_;
  security::tls_session session_;
  time_point deadline_;
  state state_ = state::begins;
  error why_{error_code::system, "the connection has ended"};
  base::unique_fd inside_;
  base::unique_fd local_end_;
  std::vector<std::byte> to_inside_; ///< plaintext that the local end has not taken
  bool wire_ended_ = false;          ///< the peer sends nothing more
  bool inside_ended_ = false;        ///< nothing more comes from the local end
};

} // namespace dlrun::link
