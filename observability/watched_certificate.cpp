#include "observability/watched_certificate.hpp"

#include "security/openssl_objects.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <openssl/err.h>
#include <vector>

namespace dlrun::observability {
namespace {

namespace openssl = security::openssl;

constexpr std::size_t file_bytes_max = 64 * 1024;

tl::unexpected<error> refuse(const char* key, const std::string& file, std::string_view why) {
  ERR_clear_error();
  return fail(error_code::bad_usage, fmt::format("{}: '{}' {}", key, file, why));
}

result<std::string> read_file(const char* key, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const char* why = in ? "it is empty, or a folder" : std::strerror(errno);
  std::string text(file_bytes_max + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.gcount() == 0)
    return refuse(key, file,
                  fmt::format("cannot be read ({}): name a PEM file that this user may read", why));
  if (static_cast<std::size_t>(in.gcount()) > file_bytes_max)
    return refuse(key, file, "has more than 64 KiB: name a PEM file");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

bool set_rules(SSL_CTX* made) {
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(made, 0) == 1;
}

bool set_own(SSL_CTX* made, const std::vector<openssl::certificate>& chain) {
  if (SSL_CTX_use_certificate(made, chain.front().get()) != 1) return false;
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(made, chain[i].get()) != 1) return false;
  return true;
}

bool trust(SSL_CTX* made, const std::vector<openssl::certificate>& authorities) {
  for (const auto& one : authorities)
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(made), one.get()) != 1 ||
        SSL_CTX_add_client_CA(made, one.get()) != 1)
      return false;
  return true;
}

} // namespace

result<watched_certificate::texts> watched_certificate::read_files() const {
  auto certificate = read_file("certificate_file", files_.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  auto key = read_file("key_file", files_.key);
  if (!key) return tl::unexpected(key.error());
  auto authority = read_file("ca_file", files_.authority);
  if (!authority) return tl::unexpected(authority.error());
  return texts{*std::move(certificate), security::secret_text{*std::move(key)}, *std::move(authority)};
}

bool watched_certificate::is_new(const texts& read) const {
  return !context_ || read.certificate != texts_.certificate || read.authority != texts_.authority ||
         read.key.reveal() != texts_.key.reveal();
}

result<void> watched_certificate::read() {
  auto read = read_files();
  if (!read) return tl::unexpected(read.error());
  if (!is_new(*read)) return {};
  const auto chain = openssl::read_certificates(read->certificate);
  if (chain.empty()) return refuse("certificate_file", files_.certificate, "has no PEM certificate");
  const auto authorities = openssl::read_certificates(read->authority);
  if (authorities.empty()) return refuse("ca_file", files_.authority, "has no PEM certificate");
  const auto key = openssl::read_key(read->key.reveal());
  if (!key) return refuse("key_file", files_.key, "has no PEM private key without a password");
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!made || !set_rules(made.get()) || !trust(made.get(), authorities))
    return openssl::fail_openssl(error_code::system, "OpenSSL cannot set up the server of metrics");
  if (!set_own(made.get(), chain))
    return refuse("certificate_file", files_.certificate, "has a certificate that OpenSSL does not take");
  if (SSL_CTX_use_PrivateKey(made.get(), key->get()) != 1)
    return refuse("key_file", files_.key,
                  fmt::format("is not the key of the certificate in '{}'", files_.certificate));
  texts_ = *std::move(read);
  context_ = std::move(made);
  return {};
}

result<std::shared_ptr<watched_certificate>> watched_certificate::open(certificate_files files,
                                                                       const std::string& key_path) {
  std::shared_ptr<watched_certificate> made{new watched_certificate{std::move(files)}};
  if (auto read = made->read(); !read)
    return fail(read.error().code, fmt::format("{}.{}", key_path, read.error().message));
  return made;
}

bool watched_certificate::serve(SSL_CTX* sessions) {
  SSL_CTX_set_client_hello_cb(sessions, &take_newest, this);
  return set_rules(sessions);
}

int watched_certificate::take_newest(SSL* session, int* /*alert*/, void* self) {
  const auto newest = static_cast<watched_certificate*>(self)->newest();
  return SSL_set_SSL_CTX(session, newest.get()) != nullptr ? SSL_CLIENT_HELLO_SUCCESS
                                                           : SSL_CLIENT_HELLO_ERROR;
}

std::shared_ptr<SSL_CTX> watched_certificate::newest() {
  const std::lock_guard lock{mutex_};
  if (auto whole = read(); !whole) ERR_clear_error(); // what is held is whole
  return context_;
}

} // namespace dlrun::observability
