/// The bytes of one TCP connection, with TLS or without.
#pragma once

#include "base/unique_fd.hpp"
#include "security/tls_session.hpp"

#include <optional>
#include <span>
#include <vector>

namespace dlrun::transport::tcp {

/// A non-blocking socket, and the TLS session over it if there is one. Without one, receive() and
/// send() are recv() and send(). With one, what was taken for sending may wait here (has_unsent),
/// and so may what has come (has_received), of which poll() says nothing. Used by one thread.
class stream {
public:
  stream() = default;
  explicit stream(base::unique_fd socket, std::optional<security::tls_session> session = std::nullopt)
      : socket_(std::move(socket))
      , session_(std::move(session)) {}

  int socket() const { return socket_.get(); }
  /// Breaks it off: nothing of what was sent is kept for who may never take it.
  void reset();

  /// @returns how many bytes were put into `into`; nothing when there are none yet; 0 at the end.
  /// Errors: system when the connection is lost, else as tls_session.
  result<std::optional<std::size_t>> receive(std::span<std::byte> into);

  /// Whether send() can take something before more has come.
  bool is_open() const { return !session_ || session_->is_established(); }

  /// Takes some of `from`, never nothing of it unless it returns nothing: then the socket takes no
  /// more, or TLS is not established yet. Errors as of receive().
  result<std::optional<std::size_t>> send(std::span<const std::byte> from);

  /// Sends what waits. @returns whether the socket took any of it. Errors as of receive().
  result<bool> flush();
  bool has_unsent() const { return session_ && !session_->wire().empty(); }

  /// Whether receive() may have something although the socket has nothing.
  bool has_received() const { return may_have_more_; }

private:
  result<std::optional<std::size_t>> receive_plain(std::span<std::byte> into) const;
  result<std::optional<std::size_t>> send_plain(std::span<const std::byte> from) const;
  result<std::size_t> decrypt(std::span<std::byte> into);
  tl::unexpected<error> refuse(error why);
  tl::unexpected<error> lost(error why);

  base::unique_fd socket_;
  std::optional<security::tls_session> session_;
  std::vector<std::byte> in_; ///< room for bytes of the wire
  std::size_t in_begin_ = 0;  ///< of those that TLS has not taken
  std::size_t in_end_ = 0;
  bool may_have_more_ = false; ///< the last receive() filled all it was given
};

} // namespace dlrun::transport::tcp
