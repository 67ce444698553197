/// Certificates and peers that no correct end makes, by OpenSSL alone; and what carries bytes
/// between two ends.
#pragma once

#include "security/openssl_objects.hpp"
#include "security/tls_session.hpp"

#include <openssl/ssl.h>
#include <optional>

namespace dlrun::security::testing {

/// Two ends of one job.
inline const certificate_name worker_name{"j1", "worker", 3, "b"};
inline const certificate_name shard_name{"j1", "ps_shard", 0, "a"};

/// A certificate as a test wants it.
struct wish {
  /// In OpenSSL's words: "URI:..", "DNS:..". Empty: none.
  std::string names;
  std::chrono::seconds valid_from{-60}; ///< from now
  std::chrono::seconds valid_to{3600};  ///< from now
  bool is_self_signed = false;
  std::string usage = "serverAuth,clientAuth";
};

/// An authority that certifies anything.
class raw_authority {
public:
  raw_authority();
  credentials issue(const wish& what) const;
  /// The name that certificate_name has, in a valid certificate.
  credentials issue(const certificate_name& name) const { return issue(wish{"URI:" + to_uri(name)}); }

private:
  openssl::key key_;
  openssl::certificate certificate_;
};

using bytes = std::vector<std::byte>;
bytes bytes_of(std::string_view text);
std::string text_of(std::span<const std::byte> some);

/// A client that checks nothing of its server.
class raw_client {
public:
  /// `mine`: what it shows, if anything. `version`: the highest that it speaks.
  explicit raw_client(const std::optional<credentials>& mine, int version = TLS1_3_VERSION);
  /// What it has to send.
  bytes take();
  /// Goes on with the handshake; what comes out of it is for others to see.
  void feed(std::span<const std::byte> from_wire);
  /// Encrypts it, whether or not the server has accepted the client.
  void write(std::span<const std::byte> plaintext);

private:
  std::unique_ptr<SSL_CTX, openssl::freed_by<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, openssl::freed_by<SSL_free>> ssl_;
};

/// What `from` has to send, all of it.
bytes take_wire(tls_session& from);

/// A client and a server that have not spoken yet, and what each has read.
struct session_pair {
  tls_session client, server;
  bytes at_client, at_server;

  session_pair(const tls_context& of_client, const tls_context& of_server);
  /// Carries what is on the wire until there is nothing more, `piece` bytes at a time.
  /// @returns the first error, of either end; what it said is carried too.
  result<void> carry(std::size_t piece = ~std::size_t{0});
};

/// The same between a raw client and a session. @returns the session's error.
result<void> carry(raw_client& client, tls_session& server);

} // namespace dlrun::security::testing
