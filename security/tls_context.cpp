#include "security/tls_context.hpp"

#include "security/openssl_objects.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>

namespace dlrun::security {
namespace {

/// Of a peer's certificates together; one of ours has 700.
constexpr long certificate_bytes_max = 16'384;

struct parsed {
  openssl::certificate certificate;
  openssl::key key;
  openssl::certificate authority;
  certificate_name name;
};

result<parsed> parse(const credentials& mine) {
  auto certificate = openssl::read_certificate(mine.certificate_pem, "the certificate");
  if (!certificate) return tl::unexpected(certificate.error());
  auto key = openssl::read_key(mine.key_pem.reveal());
  if (!key) return tl::unexpected(key.error());
  auto authority = openssl::read_certificate(mine.authority_pem, "the authority's certificate");
  if (!authority) return tl::unexpected(authority.error());
  auto name = openssl::name_of(certificate->get());
  if (!name)
    return fail(error_code::bad_usage,
                fmt::format("the certificate cannot be used: {}", name.error().message));
  if (X509_check_private_key(certificate->get(), key->get()) != 1)
    return openssl::fail_openssl(error_code::bad_usage, "the private key is not that of the certificate");
  if (X509_verify(certificate->get(), X509_get0_pubkey(authority->get())) != 1)
    return openssl::fail_openssl(error_code::bad_usage, "the certificate is not of this authority");
  return parsed{std::move(*certificate), std::move(*key), std::move(*authority), std::move(*name)};
}

/// What all sessions have, whatever the system's configuration of OpenSSL says.
bool set_rules(SSL_CTX* made) {
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS); // a session that rests has none
  SSL_CTX_set_max_cert_list(made, certificate_bytes_max);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(made, 0); // nobody between the authority and who it certifies
  return SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384") == 1 &&
         SSL_CTX_set1_groups_list(made, "X25519:P-256") == 1 &&
         SSL_CTX_set1_sigalgs_list(made, "ECDSA+SHA256") == 1 && SSL_CTX_set_num_tickets(made, 0) == 1;
}

result<std::shared_ptr<SSL_CTX>> make_for(const parsed& mine) {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  const bool done = made && set_rules(made.get()) &&
                    SSL_CTX_use_certificate(made.get(), mine.certificate.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(made.get(), mine.key.get()) == 1 &&
                    X509_STORE_add_cert(SSL_CTX_get_cert_store(made.get()), mine.authority.get()) == 1 &&
                    X509_STORE_set_flags(SSL_CTX_get_cert_store(made.get()), X509_V_FLAG_X509_STRICT) == 1;
  if (!done) return openssl::fail_openssl(error_code::system, "OpenSSL cannot prepare TLS sessions");
  return made;
}

} // namespace

tls_context::tls_context(certificate_name name, const tls_options& options, std::shared_ptr<SSL_CTX> made)
    : name_(std::move(name))
    , options_(options)
    , current_(std::move(made)) {}

tls_context::~tls_context() = default;

result<std::shared_ptr<tls_context>> tls_context::make(const credentials& mine, const tls_options& options) {
  auto read = parse(mine);
  if (!read) return tl::unexpected(read.error());
  auto made = make_for(*read);
  if (!made) return tl::unexpected(made.error());
  return std::shared_ptr<tls_context>(new tls_context(std::move(read->name), options, std::move(*made)));
}

result<void> tls_context::renew(const credentials& mine) {
  const auto read = parse(mine);
  if (!read) return tl::unexpected(read.error());
  if (read->name != name_)
    return fail(error_code::bad_usage, fmt::format("a certificate for {} cannot follow one for {}",
                                                   describe(read->name), describe(name_)));
  auto made = make_for(*read);
  if (!made) return tl::unexpected(made.error());
  const std::scoped_lock lock(mutex_);
  current_.swap(*made);
  return {};
}

std::shared_ptr<SSL_CTX> tls_context::current() const {
  const std::scoped_lock lock(mutex_);
  return current_;
}

} // namespace dlrun::security
