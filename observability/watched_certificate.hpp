/// The certificate of a server, in files that are replaced while it runs.
#pragma once

#include "security/credentials.hpp"

#include <dlrun/error.hpp>
#include <memory>
#include <mutex>
#include <openssl/ssl.h>
#include <string>

namespace dlrun::observability {

/// Of PEM files, each of at most 64 KiB.
struct certificate_files {
  std::string certificate; ///< of the server; behind it those between it and its authority
  std::string key;         ///< of that, without a password
  std::string authority;   ///< of clients: they are let in by a certificate of one of these
};

/// What such files have, read for each handshake: who replaces them, as cert-manager does, need not
/// start the server again. Thread-safe.
class watched_certificate {
public:
  /// @returns bad_usage, naming `key_path` and the file that is none, cannot be read, or does not
  /// belong to the others.
  static result<std::shared_ptr<watched_certificate>> open(certificate_files files,
                                                           const std::string& key_path);

  /// Each session of a server begins by TLS 1.3 with what the files have then; where that is no
  /// whole set, since somebody is writing it, with what they had before. This outlives `sessions`.
  /// @returns false where OpenSSL cannot
  bool serve(SSL_CTX* sessions);

private:
  struct texts {
    std::string certificate;
    security::secret_text key;
    std::string authority;
  };
  explicit watched_certificate(certificate_files files)
      : files_{std::move(files)} {}

  static int take_newest(SSL* session, int* alert, void* self);
  std::shared_ptr<SSL_CTX> newest();
  result<void> read();
  result<texts> read_files() const;
  bool is_new(const texts& read) const;

  const certificate_files files_;
  std::mutex mutex_;
  texts texts_;                      ///< guarded by mutex_, as is the next
  std::shared_ptr<SSL_CTX> context_; ///< of `texts_`
};

} // namespace dlrun::observability
