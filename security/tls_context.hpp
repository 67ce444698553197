/// tls_context: what the TLS sessions of one process have in common.
#pragma once

#include "security/certificate_name.hpp"
#include "security/credentials.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <openssl/types.h>
#include <string>

namespace dlrun::security {

struct tls_options {
  /// A session changes its key after it has sent this many bytes: AES-GCM is safe for 2^24.5
  /// records of 16 KiB (RFC 8446, 5.5), 380 GB.
  std::uint64_t key_bytes_max = std::uint64_t{1} << 36;
};

/// The pin of a job: the SHA-256 of its authority's certificate, 32 bytes, by which a client
/// without a certificate recognises certificates of the job. @returns bad_usage when
/// `authority_pem` holds no certificate.
result<std::string> pin_of(const std::string& authority_pem);

/// The credentials and rules that all TLS sessions of a process share: TLS 1.3 only, AES-GCM, a
/// certificate at each end, trust in the job's authority alone; no tickets, early data or
/// compression. Thread-safe.
class tls_context {
public:
  /// @returns bad_usage when a PEM text does not hold what it should, when key, certificate and
  /// authority do not belong together, or when the certificate has no name or another than one
  /// certificate_name.
  static result<std::shared_ptr<tls_context>> make(const credentials& mine, const tls_options& options = {});

  /// For a door: a server that shows `mine` with the certificate of its authority, and asks clients
  /// for none. A client proves by its messages that it may enter. @returns errors as make().
  static result<std::shared_ptr<tls_context>> make_door(const credentials& mine);
  /// For a client without a certificate: it recognises the door of a job by the pin of the
  /// authority, and talks only to this role of the job. @returns system.
  static result<std::shared_ptr<tls_context>> make_pinned(const std::string& pin, const std::string& role);

  /// For a client that knows nothing of the server: both ends must first prove to each other who
  /// they are, over tls_session::binding(). @returns system.
  static result<std::shared_ptr<tls_context>> make_unverified();

  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;
  ~tls_context();

  /// Rotation: sessions that start from now on use `mine`; running sessions keep what they have.
  /// @returns errors as make(), and bad_usage when `mine` has another name.
  result<void> renew(const credentials& mine);

  /// The name in its certificates, which never changes. For a client with a pin: the role that it
  /// wants to talk to, of any job.
  const certificate_name& name() const { return name_; }
  const tls_options& options() const { return options_; }

  /// Whether both ends show certificates of the job.
  bool is_mutual() const { return kind_ == kind::mutual; }
  /// Whether this is the context of a client with a pin.
  bool is_pinned() const { return kind_ == kind::pinned; }

  /// What OpenSSL makes a session of; for tls_session.
  std::shared_ptr<SSL_CTX> current() const;

private:
  enum class kind : std::uint8_t { mutual, door, pinned, unverified };
  tls_context(certificate_name name, const tls_options& options, kind which, std::shared_ptr<SSL_CTX> made);
  static result<std::shared_ptr<tls_context>> make_of_kind(const credentials& mine,
                                                           const tls_options& options, kind which);

  const certificate_name name_;
  const tls_options options_;
  const kind kind_;
  mutable std::mutex mutex_;
  std::shared_ptr<SSL_CTX> current_; ///< guarded by mutex_
};

} // namespace dlrun::security
