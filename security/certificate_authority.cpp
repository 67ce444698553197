#include "security/certificate_authority.hpp"

#include "security/openssl_objects.hpp"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/x509.h>

namespace dlrun::security {
namespace {

using std::chrono::system_clock;

/// Longer than any job.
constexpr std::chrono::hours authority_lifetime{24 * 3650};
constexpr int serial_bits = 128;

bool set_random_serial(X509* certificate) {
  const std::unique_ptr<BIGNUM, openssl::freed_by<BN_free>> number(BN_new());
  return number && BN_rand(number.get(), serial_bits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_validity(X509* certificate, const validity& when) {
  const auto not_before = system_clock::to_time_t(when.from - clock_skew);
  const auto not_after = system_clock::to_time_t(when.from + when.lifetime);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), not_before) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), not_after) != nullptr;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, openssl::freed_by<X509_EXTENSION_free>> made(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return made && X509_add_ext(certificate, made.get(), -1) == 1;
}

bool add_name_text(X509_NAME* name, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

/// What both kinds of certificate have.
openssl::certificate begin_certificate(EVP_PKEY* key, const validity& when) {
  openssl::certificate made(X509_new());
  const bool done = made && X509_set_version(made.get(), X509_VERSION_3) == 1 &&
                    set_random_serial(made.get()) && set_validity(made.get(), when) &&
                    X509_set_pubkey(made.get(), key) == 1;
  return done ? std::move(made) : nullptr;
}

openssl::certificate certify_authority(EVP_PKEY* key, const std::string& job) {
  auto made = begin_certificate(key, {system_clock::now(), authority_lifetime});
  if (!made) return nullptr;
  auto* const one = made.get();
  auto* const name = X509_get_subject_name(one);
  const bool done = add_name_text(name, "O", "dlrun") && add_name_text(name, "CN", job) &&
                    X509_set_issuer_name(one, name) == 1 &&
                    add_extension(one, one, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(one, one, NID_key_usage, "critical,keyCertSign") &&
                    add_extension(one, one, NID_subject_key_identifier, "hash") &&
                    X509_sign(one, key, EVP_sha256()) > 0;
  return done ? std::move(made) : nullptr;
}

/// The subject is empty: the alternative name is all there is, and critical therefore. Its
/// characters (check_name) have no meaning for OpenSSL.
openssl::certificate certify(EVP_PKEY* key, const certificate_name& name, const validity& when,
                             X509* authority, EVP_PKEY* authority_key) {
  auto made = begin_certificate(key, when);
  if (!made) return nullptr;
  auto* const one = made.get();
  const bool done =
      X509_set_issuer_name(one, X509_get_subject_name(authority)) == 1 &&
      add_extension(one, authority, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(one, authority, NID_key_usage, "critical,digitalSignature") &&
      add_extension(one, authority, NID_ext_key_usage, "serverAuth,clientAuth") &&
      add_extension(one, authority, NID_authority_key_identifier, "keyid:always") &&
      add_extension(one, authority, NID_subject_alt_name, ("critical,URI:" + to_uri(name)).c_str()) &&
      X509_sign(one, authority_key, EVP_sha256()) > 0;
  return done ? std::move(made) : nullptr;
}

} // namespace

certificate_authority::certificate_authority(std::string job, key_pointer key,
                                             certificate_pointer certificate, std::string certificate_pem)
    : job_(std::move(job))
    , key_(std::move(key))
    , certificate_(std::move(certificate))
    , certificate_pem_(std::move(certificate_pem)) {}

result<certificate_authority> certificate_authority::make(const std::string& job) {
  if (auto ok = check_name({job, "authority", 0, "any"}); !ok) return tl::unexpected(ok.error());
  auto key = openssl::make_key();
  if (!key) return tl::unexpected(key.error());
  auto certificate = certify_authority(key->get(), job);
  if (!certificate)
    return openssl::fail_openssl(error_code::system, "OpenSSL cannot make an authority's certificate");
  auto pem = openssl::to_pem(certificate.get());
  if (!pem) return tl::unexpected(pem.error());
  return certificate_authority(job, {key->release(), &EVP_PKEY_free}, {certificate.release(), &X509_free},
                               std::move(*pem));
}

result<certificate_authority> certificate_authority::restore(const std::string& job, const pem_texts& from) {
  if (auto ok = check_name({job, "authority", 0, "any"}); !ok) return tl::unexpected(ok.error());
  auto key = openssl::read_key(from.key.reveal());
  if (!key) return tl::unexpected(key.error());
  auto certificate = openssl::read_certificate(from.certificate, "the certificate of an authority");
  if (!certificate) return tl::unexpected(certificate.error());
  if (X509_check_private_key(certificate->get(), key->get()) != 1)
    return openssl::fail_openssl(error_code::bad_usage, "the key of an authority is not its certificate's");
  return certificate_authority(job, {key->release(), &EVP_PKEY_free}, {certificate->release(), &X509_free},
                               from.certificate);
}

result<certificate_authority::pem_texts> certificate_authority::pem() const {
  auto key = openssl::to_pem(key_.get());
  if (!key) return tl::unexpected(key.error());
  return pem_texts{certificate_pem_, secret_text{std::move(*key)}};
}

result<credentials> certificate_authority::issue(const certificate_name& name, const validity& when) const {
  if (auto ok = check_name(name); !ok) return tl::unexpected(ok.error());
  if (name.job != job_)
    return fail(error_code::bad_usage,
                fmt::format("the authority of job {} cannot certify {}", job_, describe(name)));
  if (when.lifetime < std::chrono::seconds{1})
    return fail(error_code::bad_usage,
                fmt::format("a certificate for {} must be valid for a second at least", describe(name)));
  const auto key = openssl::make_key();
  if (!key) return tl::unexpected(key.error());
  const auto certificate = certify(key->get(), name, when, certificate_.get(), key_.get());
  if (!certificate)
    return openssl::fail_openssl(error_code::system,
                                 fmt::format("OpenSSL cannot make a certificate for {}", describe(name)));
  const auto certificate_pem = openssl::to_pem(certificate.get());
  if (!certificate_pem) return tl::unexpected(certificate_pem.error());
  auto key_pem = openssl::to_pem(key->get());
  if (!key_pem) return tl::unexpected(key_pem.error());
  return credentials{*certificate_pem, secret_text(std::move(*key_pem)), certificate_pem_};
}

} // namespace dlrun::security
