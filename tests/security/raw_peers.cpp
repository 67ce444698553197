#include "tests/security/raw_peers.hpp"

#include <algorithm>
#include <chrono>
#include <openssl/rand.h>
#include <stdexcept>

namespace dlrun::security::testing {
namespace {

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

void add_extension(X509* to, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  auto* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  expect(made != nullptr && X509_add_ext(to, made, -1) == 1, "an extension");
  X509_EXTENSION_free(made);
}

openssl::certificate begin_certificate(EVP_PKEY* key, std::chrono::seconds from, std::chrono::seconds to) {
  openssl::certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  static int serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), from.count());
  X509_gmtime_adj(X509_getm_notAfter(made.get()), to.count());
  X509_set_pubkey(made.get(), key);
  return made;
}

} // namespace

raw_authority::raw_authority()
    : key_(openssl::make_key().value())
    , certificate_(begin_certificate(key_.get(), std::chrono::hours{-1}, std::chrono::hours{24})) {
  auto* const one = certificate_.get();
  auto* const name = X509_get_subject_name(one);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("raw"), -1, -1,
                             0);
  X509_set_issuer_name(one, name);
  add_extension(one, one, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(one, one, NID_key_usage, "critical,keyCertSign");
  add_extension(one, one, NID_subject_key_identifier, "hash");
  expect(X509_sign(one, key_.get(), EVP_sha256()) > 0, "a signature");
}

credentials raw_authority::issue(const wish& what) const {
  const auto key = openssl::make_key().value();
  const auto made = begin_certificate(key.get(), what.valid_from, what.valid_to);
  auto* const one = made.get();
  auto* const issuer = what.is_self_signed ? one : certificate_.get();
  X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("leaf"), -1, -1, 0);
  X509_set_issuer_name(one, X509_get_subject_name(issuer));
  add_extension(one, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(one, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(one, issuer, NID_ext_key_usage, what.usage);
  add_extension(one, issuer, NID_subject_key_identifier, "hash");
  if (!what.is_self_signed) add_extension(one, issuer, NID_authority_key_identifier, "keyid:always");
  if (!what.names.empty()) add_extension(one, issuer, NID_subject_alt_name, what.names);
  expect(X509_sign(one, what.is_self_signed ? key.get() : key_.get(), EVP_sha256()) > 0, "a signature");
  return {openssl::to_pem(one).value(), secret_text(openssl::to_pem(key.get()).value()),
          openssl::to_pem(certificate_.get()).value()};
}

bytes bytes_of(std::string_view text) {
  const auto some = std::as_bytes(std::span(text));
  return {some.begin(), some.end()};
}

std::string text_of(std::span<const std::byte> some) {
  return {reinterpret_cast<const char*>(some.data()), some.size()};
}

raw_client::raw_client(const std::optional<credentials>& mine, int version)
    : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_set_max_proto_version(context_.get(), version);
  if (mine) {
    const auto certificate = openssl::read_certificate(mine->certificate_pem, "it").value();
    const auto key = openssl::read_key(mine->key_pem.reveal()).value();
    expect(SSL_CTX_use_certificate(context_.get(), certificate.get()) == 1 &&
               SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1,
           "credentials");
  }
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_.get());
  SSL_do_handshake(ssl_.get());
}

bytes raw_client::take() {
  auto* const from = SSL_get_wbio(ssl_.get());
  bytes some(BIO_ctrl_pending(from));
  if (!some.empty()) BIO_read(from, some.data(), static_cast<int>(some.size()));
  return some;
}

void raw_client::feed(std::span<const std::byte> from_wire) {
  BIO_write(SSL_get_rbio(ssl_.get()), from_wire.data(), static_cast<int>(from_wire.size()));
  SSL_do_handshake(ssl_.get());
}

void raw_client::write(std::span<const std::byte> plaintext) {
  SSL_write(ssl_.get(), plaintext.data(), static_cast<int>(plaintext.size()));
}

bytes take_wire(tls_session& from) {
  const auto some = from.wire();
  bytes taken(some.begin(), some.end());
  from.sent(taken.size());
  return taken;
}

session_pair::session_pair(const tls_context& of_client, const tls_context& of_server)
    : client(tls_session::start(of_client, tls_session::side::client).value())
    , server(tls_session::start(of_server, tls_session::side::server).value()) {}

result<void> session_pair::carry(std::size_t piece) {
  result<void> outcome;
  const auto move = [&](tls_session& from, tls_session& to, bytes& read) {
    const auto wire = take_wire(from);
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      const auto some = std::span(wire).subspan(at, std::min(piece, wire.size() - at));
      if (auto fed = to.feed(some, read); !fed && outcome) outcome = fed;
      if (piece > wire.size()) break;
    }
    return !wire.empty();
  };
  for (bool moves = true; moves;) {
    moves = move(client, server, at_server);
    moves = move(server, client, at_client) || moves;
  }
  return outcome;
}

result<void> carry(raw_client& client, tls_session& server) {
  bytes read;
  for (;;) {
    const auto wire = client.take();
    if (wire.empty()) return {};
    const auto fed = server.feed(wire, read);
    client.feed(take_wire(server));
    if (!fed) return fed;
  }
}

} // namespace dlrun::security::testing
