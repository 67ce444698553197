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

result<std::shared_ptr<SSL_CTX>> make_for(const parsed& mine, bool is_door) {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  const bool done = made && set_rules(made.get()) &&
                    SSL_CTX_use_certificate(made.get(), mine.certificate.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(made.get(), mine.key.get()) == 1 &&
                    X509_STORE_add_cert(SSL_CTX_get_cert_store(made.get()), mine.authority.get()) == 1 &&
                    X509_STORE_set_flags(SSL_CTX_get_cert_store(made.get()), X509_V_FLAG_X509_STRICT) == 1 &&
                    (!is_door || SSL_CTX_add1_chain_cert(made.get(), mine.authority.get()) == 1);
  if (!done) return openssl::fail_openssl(error_code::system, "OpenSSL cannot prepare TLS sessions");
  if (is_door) SSL_CTX_set_verify(made.get(), SSL_VERIFY_NONE, nullptr);
  return made;
}

// ---- a client that knows a job by the certificate of its authority

void free_pin(void*, void* pin, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<std::string*>(pin); }

int pin_place() {
  static const int place = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, &free_pin);
  return place;
}

struct stack_owner {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); } // not what is in it
};

/// What the server sent is trusted if it comes from the authority that has the pin, which it sent
/// too.
int verify_by_pin(X509_STORE_CTX* chain, void*) {
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* const pin =
      static_cast<const std::string*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), pin_place()));
  const std::unique_ptr<STACK_OF(X509), stack_owner> trusted{sk_X509_new_null()};
  auto* const sent = X509_STORE_CTX_get0_untrusted(chain);
  for (int i = 0; trusted && pin != nullptr && i < sk_X509_num(sent); ++i)
    if (const auto digest = openssl::digest_of(sk_X509_value(sent, i)); digest && *digest == *pin)
      sk_X509_push(trusted.get(), sk_X509_value(sent, i));
  X509_STORE_CTX_set0_trusted_stack(chain, trusted.get());
  const int done = X509_verify_cert(chain);
  X509_STORE_CTX_set0_trusted_stack(chain, nullptr);
  return done;
}

} // namespace

result<std::string> pin_of(const std::string& authority_pem) {
  const auto authority = openssl::read_certificate(authority_pem, "the authority's certificate");
  if (!authority) return tl::unexpected(authority.error());
  return openssl::digest_of(authority->get());
}

tls_context::tls_context(certificate_name name, const tls_options& options, kind which,
                         std::shared_ptr<SSL_CTX> made)
    : name_(std::move(name))
    , options_(options)
    , kind_(which)
    , current_(std::move(made)) {}

tls_context::~tls_context() = default;

result<std::shared_ptr<tls_context>> tls_context::make_of_kind(const credentials& mine,
                                                               const tls_options& options, kind which) {
  auto read = parse(mine);
  if (!read) return tl::unexpected(read.error());
  auto made = make_for(*read, which == kind::door);
  if (!made) return tl::unexpected(made.error());
  return std::shared_ptr<tls_context>(
      new tls_context(std::move(read->name), options, which, std::move(*made)));
}

result<std::shared_ptr<tls_context>> tls_context::make(const credentials& mine, const tls_options& options) {
  return make_of_kind(mine, options, kind::mutual);
}

result<std::shared_ptr<tls_context>> tls_context::make_door(const credentials& mine) {
  return make_of_kind(mine, {}, kind::door);
}

result<std::shared_ptr<tls_context>> tls_context::make_pinned(const std::string& pin,
                                                              const std::string& role) {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  auto kept = std::make_unique<std::string>(pin);
  const bool done = made && set_rules(made.get()) &&
                    X509_STORE_set_flags(SSL_CTX_get_cert_store(made.get()), X509_V_FLAG_X509_STRICT) == 1 &&
                    SSL_CTX_set_ex_data(made.get(), pin_place(), kept.get()) == 1;
  if (!done) return openssl::fail_openssl(error_code::system, "OpenSSL cannot prepare TLS sessions");
  kept.release(); // it goes with what OpenSSL has made
  SSL_CTX_set_cert_verify_callback(made.get(), &verify_by_pin, nullptr);
  return std::shared_ptr<tls_context>(
      new tls_context({.job = {}, .role = role, .index = 0, .host = {}}, {}, kind::pinned, std::move(made)));
}

result<std::shared_ptr<tls_context>> tls_context::make_unverified() {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  if (!made || !set_rules(made.get()))
    return openssl::fail_openssl(error_code::system, "OpenSSL cannot prepare TLS sessions");
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<tls_context>(new tls_context({}, {}, kind::unverified, std::move(made)));
}

result<void> tls_context::renew(const credentials& mine) {
  const auto read = parse(mine);
  if (!read) return tl::unexpected(read.error());
  if (read->name != name_)
    return fail(error_code::bad_usage, fmt::format("a certificate for {} cannot follow one for {}",
                                                   describe(read->name), describe(name_)));
  auto made = make_for(*read, kind_ == kind::door);
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
