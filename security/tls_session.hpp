/// tls_session: one end of one TLS connection, without a socket.
#pragma once

#include "security/tls_context.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dlrun::security {

/// Bytes that a peer may send before it has shown who it is; then the session ends.
inline constexpr std::size_t handshake_bytes_max = std::size_t{64} << 10;

/// See tls_session::binding().
using channel_binding = std::array<std::byte, 32>;

/// One end of a TLS connection: turns bytes from the wire into plaintext, and plaintext into bytes
/// for the wire. It has no socket, thread or clock: the caller moves the bytes, and ends a session
/// that takes too long. It takes all bytes that it is given and keeps at most one record (16 KiB)
/// of them.
///
///   bytes received  -> feed() or read()  -> plaintext
///   plaintext       -> write()           -> wire(), sent()
///
/// Each of these calls, and start(), may leave something in wire(): handshake, alerts, records. It
/// is sent in order, also after an error, so that the peer hears why it was refused; then the
/// connection is closed.
///
/// Errors say what is wrong in words for an operator, without the peer's address, and stay: every
/// later call returns the same. `fenced`: a certificate is missing, expired, not yet valid, of
/// another authority, of another job or has another form of name; or the peer refuses ours.
/// `protocol`: no TLS 1.3, no TLS, records that were changed or are too long. `limit_exceeded`:
/// handshake_bytes_max. `system`: OpenSSL has no memory.
///
/// Not thread-safe: one thread at a time. Move only.
class tls_session {
public:
  /// Which end: a client speaks first.
  enum class side { client, server };

  /// With the credentials that `context` has now. The context may go before the session.
  /// @returns system.
  static result<tls_session> start(const tls_context& context, side as);
  tls_session(tls_session&&) noexcept;
  tls_session& operator=(tls_session&&) noexcept;
  ~tls_session();

  /// Takes all of `from_wire` and appends the plaintext in it, which is no longer than `from_wire`
  /// and one record.
  result<void> feed(std::span<const std::byte> from_wire, std::vector<std::byte>& plaintext);

  /// The same without a copy: puts plaintext where it belongs, until `into` (not empty) is full or
  /// `from_wire` is used up. `from_wire` is cut down to what has not been taken: it is to be
  /// offered again. There may be plaintext left when `from_wire` is empty: read() until it gives 0.
  /// @returns how many bytes were put into `into`.
  result<std::size_t> read(std::span<const std::byte>& from_wire, std::span<std::byte> into);

  /// Both ends have the keys and `peer()` is known. A server then knows that it talks to that peer.
  /// A client knows the server, but learns whether the server has accepted it only with the first
  /// bytes from the server, or an error.
  bool is_established() const;

  /// Whether the session has failed since the other end's certificate is not valid yet, or not any
  /// more, by the clock here: else it may be what it should be.
  bool has_untimely_peer() const;

  /// The name in the verified certificate of the other end, which is of the same job. Call it only
  /// once is_established(), and neither at a door, which asks for no certificate, nor in a client
  /// of make_unverified().
  const certificate_name& peer() const;

  /// A value that only this session has, the same at both ends: a man in the middle has another one
  /// with each end (RFC 9266, "tls-exporter"). A proof over it holds for this session alone. Only
  /// once is_established(). @returns system.
  result<channel_binding> binding() const;

  /// Encrypts all of `plaintext` into wire(), which grows by it. Only once is_established().
  result<void> write(std::span<const std::byte> plaintext);

  /// What is to be sent, in order; valid until the next call.
  std::span<const std::byte> wire() const;
  /// The first `bytes` of wire() were sent.
  void sent(std::size_t bytes);

  /// Tells the other end, through wire(), that nothing more will be written.
  void close();
  /// The other end has said that nothing follows: everything has arrived.
  bool is_closed() const;
  /// The connection has ended. @returns system unless is_closed(): it was cut, and what came may
  /// not be all; or the error that ended the session before.
  result<void> end_of_wire() const;

private:
  struct state;
  explicit tls_session(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

} // namespace dlrun::security
