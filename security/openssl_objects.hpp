/// Owners of OpenSSL's objects, and PEM.
#pragma once

#include "security/certificate_name.hpp"

#include <memory>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <string>
#include <vector>

namespace dlrun::security::openssl {

/// Calls an OpenSSL function that frees.
template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using bio = std::unique_ptr<BIO, freed_by<BIO_free>>;
using key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using general_names = std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES_free>>;

/// "`what`: <OpenSSL's reasons>", and empties OpenSSL's queue of errors.
tl::unexpected<error> fail_openssl(error_code code, std::string_view what);

/// A new key of ECDSA P-256. @returns system.
result<key> make_key();

/// @returns system.
result<std::string> to_pem(X509* from);
/// Through memory that OpenSSL wipes. @returns system.
result<std::string> to_pem(EVP_PKEY* from);

/// The one certificate in `pem`. @returns bad_usage: `what` holds none, or more than one.
result<certificate> read_certificate(const std::string& pem, std::string_view what);
/// All certificates in `pem`, in their order; none where none comes first.
std::vector<certificate> read_certificates(const std::string& pem);
/// SHA-256 of a certificate, 32 bytes. @returns system.
result<std::string> digest_of(X509* certificate);
/// The private key in `pem`, which has no password. @returns bad_usage.
result<key> read_key(const std::string& pem);

/// The one name of a certificate. @returns protocol when it has none, more than one, or another
/// form of it.
result<certificate_name> name_of(X509* from);

/// "2026-11-25 18:00:00 UTC".
std::string to_string(const ASN1_TIME* when);
/// The time here, in the same form.
std::string now_text();
/// When the certificate was issued, by the clock of who issued it, in the same form.
std::string issue_time_of(const X509* certificate);

} // namespace dlrun::security::openssl
