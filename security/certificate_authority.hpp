/// certificate_authority: issues the certificates of one job.
#pragma once

#include "security/certificate_name.hpp"
#include "security/credentials.hpp"

#include <chrono>
#include <memory>
#include <openssl/types.h>

namespace dlrun::security {

/// A certificate is valid from this long before it was issued, since clocks of hosts differ: one
/// may be an hour behind, and some minutes.
inline constexpr std::chrono::minutes clock_skew{65};

/// When a certificate is valid: [from - clock_skew, from + lifetime).
struct validity {
  std::chrono::system_clock::time_point from = std::chrono::system_clock::now();
  std::chrono::seconds lifetime = std::chrono::hours{24};
};

/// Issues the certificates of one job, with an ECDSA P-256 key and a self-signed certificate made
/// for the job. Move only. One thread at a time.
class certificate_authority {
public:
  /// The texts from which another process restores the authority.
  struct pem_texts {
    std::string certificate;
    secret_text key;
  };

  /// @returns bad_usage when `job` cannot be part of a certificate_name; system when OpenSSL cannot
  /// make a key.
  static result<certificate_authority> make(const std::string& job);
  /// Restores the authority of `job` from pem(). @returns bad_usage when the texts are no
  /// certificate and key, or do not belong together.
  static result<certificate_authority> restore(const std::string& job, const pem_texts& from);

  const std::string& job() const { return job_; }
  const std::string& certificate_pem() const { return certificate_pem_; }
  /// Certificate and private key, for a file of mode 0600 that restore() reads. @returns system.
  result<pem_texts> pem() const;

  /// Makes a new key and a certificate for it, which is good for both ends of a connection and has
  /// a random serial number of 128 bits.
  /// @returns bad_usage for a malformed name, a name of another job, or a lifetime below a second.
  result<credentials> issue(const certificate_name& name, const validity& when = {}) const;

private:
  using key_pointer = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
  using certificate_pointer = std::unique_ptr<X509, void (*)(X509*)>;
  certificate_authority(std::string job, key_pointer key, certificate_pointer certificate,
                        std::string certificate_pem);

  std::string job_;
  key_pointer key_;
  certificate_pointer certificate_;
  std::string certificate_pem_;
};

} // namespace dlrun::security
