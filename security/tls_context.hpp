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
  /// A session takes a new key after it has sent so much under one: AES-GCM is safe for 2^24.5
  /// records of 16 KiB (RFC 8446, 5.5), 380 GB.
  std::uint64_t key_bytes_max = std::uint64_t{1} << 36;
};

/// By which who has no certificate yet knows the certificates of a job: the SHA-256 of that of its
/// authority, 32 bytes. @returns bad_usage when `authority_pem` holds no certificate.
result<std::string> pin_of(const std::string& authority_pem);

/// Credentials, and rules that are the same for all: TLS 1.3 only, AES-GCM, a certificate of each
/// end, the job's authority as the only trust; no tickets, no early data, no compression.
/// Thread-safe.
class tls_context {
public:
  /// @returns bad_usage when a PEM text does not hold what it should, when key, certificate and
  /// authority do not belong together, or when the certificate has no name or another than one
  /// certificate_name.
  static result<std::shared_ptr<tls_context>> make(const credentials& mine, const tls_options& options = {});

  /// Of a door: a server that shows `mine` with the certificate of its authority, and asks for
  /// none. Who comes in proves by what it says that it may. @returns errors as make().
  static result<std::shared_ptr<tls_context>> make_door(const credentials& mine);
  /// Of a client that has no certificate: it knows the door of a job by the pin of its authority,
  /// and talks to this role of it alone. @returns system.
  static result<std::shared_ptr<tls_context>> make_pinned(const std::string& pin, const std::string& role);

  /// Of a client that knows nothing of the server: who that is, both ends have to prove to each
  /// other by tls_session::binding() before anything is said. @returns system.
  static result<std::shared_ptr<tls_context>> make_unverified();

  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;
  ~tls_context();

  /// Rotation: sessions that start from now on use `mine`; those that run go on as they are.
  /// @returns errors as make(), and bad_usage when `mine` has another name.
  result<void> renew(const credentials& mine);

  /// Whom its certificates speak for. Never changes. Of a client with a pin: whom it wants to talk
  /// to, of any job.
  const certificate_name& name() const { return name_; }
  const tls_options& options() const { return options_; }

  /// Do both ends show certificates of the job?
  bool is_mutual() const { return kind_ == kind::mutual; }
  /// Of a client with a pin.
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
