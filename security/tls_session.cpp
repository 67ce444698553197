#include "security/tls_session.hpp"

#include "security/openssl_objects.hpp"
#include "security/tls_errors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <optional>
#include <string_view>

namespace dlrun::security {
namespace {

/// Plaintext of a record (RFC 8446, 5.1).
constexpr std::size_t record_bytes = 16'384;
/// What comes before the handshake is done is taken in such pieces, and counted.
constexpr std::size_t handshake_piece_bytes = 4096;

} // namespace

/// Lives where OpenSSL's callbacks find it.
struct tls_session::state {
  std::unique_ptr<SSL, openssl::freed_by<SSL_free>> ssl;
  std::string job;                 ///< that a peer must be of; "": of any
  std::string role;                ///< that a peer must have; "": any
  bool asks_peer = true;           ///< for a certificate
  std::uint64_t key_bytes_max = 0; ///< see tls_options
  std::span<const std::byte> from; ///< of the wire, during a call of read()
  std::vector<std::byte> out;      ///< for the wire
  std::size_t out_sent = 0;        ///< of these
  std::size_t handshake_bytes = 0; ///< taken before it was done
  std::uint64_t key_bytes = 0;     ///< written under the present key
  std::string refusal;             ///< of the peer's certificate
  bool is_untimely = false;        ///< which is refused by the clock here
  std::optional<certificate_name> peer;
  std::optional<error> broken;
  bool is_established = false; // stays, also while OpenSSL takes a new key
  bool is_closed = false;

  static int read_wire(BIO* bio, char* into, int size);
  static int write_wire(BIO* bio, const char* from, int size);
  static long control(BIO* bio, int command, long number, void* pointer);
  static const BIO_METHOD* wire_method();
  static int verify(int is_good, X509_STORE_CTX* chain);

  bool begin(SSL_CTX* context, side as);
  result<void> shake_hands(std::span<const std::byte>& from_wire);
  tl::unexpected<error> give_up();
  void change_key();
};

// ---- what OpenSSL calls

int tls_session::state::read_wire(BIO* bio, char* into, int size) {
  auto& self = *static_cast<state*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.from.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const auto taken = std::min(self.from.size(), static_cast<std::size_t>(std::max(size, 0)));
  std::memcpy(into, self.from.data(), taken);
  self.from = self.from.subspan(taken);
  return static_cast<int>(taken);
}

int tls_session::state::write_wire(BIO* bio, const char* from, int size) {
  auto& self = *static_cast<state*>(BIO_get_data(bio));
  const auto* const bytes = reinterpret_cast<const std::byte*>(from);
  self.out.insert(self.out.end(), bytes, bytes + std::max(size, 0));
  return size;
}

long tls_session::state::control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* tls_session::state::wire_method() {
  static const BIO_METHOD* const method = [] {
    auto* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    DLRUN_CHECK(made != nullptr, "a method of OpenSSL is a little memory");
    BIO_meth_set_read(made, &read_wire);
    BIO_meth_set_write(made, &write_wire);
    BIO_meth_set_ctrl(made, &control);
    return made;
  }();
  return method;
}

/// Called for each certificate of the chain, the peer's own last; what is wrong is noted, and the
/// peer is told by an alert.
int tls_session::state::verify(int is_good, X509_STORE_CTX* chain) {
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& self = *static_cast<state*>(SSL_get_app_data(ssl));
  const auto refuse = [&](std::string why) {
    self.refusal = std::move(why);
    return 0;
  };
  if (is_good != 1) {
    const int reason = X509_STORE_CTX_get_error(chain);
    self.is_untimely = openssl::is_untimely(reason); // of the authority's certificate perhaps
    return refuse(openssl::refusal_of(
        self.is_untimely ? X509_STORE_CTX_get_current_cert(chain) : X509_STORE_CTX_get0_cert(chain), reason));
  }
  if (X509_STORE_CTX_get_error_depth(chain) != 0) return 1;
  auto name = openssl::name_of(X509_STORE_CTX_get0_cert(chain));
  X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED); // unless it is accepted below
  if (!name) return refuse("the other end's certificate cannot be used: " + name.error().message);
  if (!self.role.empty() && (name->role != self.role || name->index != 0))
    return refuse(fmt::format("the other end is {}, not the {}", describe(*name), self.role));
  if (!self.job.empty() && name->job != self.job)
    return refuse(fmt::format("the other end is {}, this is job {}", describe(*name), self.job));
  X509_STORE_CTX_set_error(chain, X509_V_OK);
  self.peer = std::move(*name);
  return 1;
}

// ---- steps

bool tls_session::state::begin(SSL_CTX* context, side as) {
  ssl.reset(SSL_new(context));
  openssl::bio wire(BIO_new(wire_method()));
  if (!ssl || !wire) return false;
  BIO_set_data(wire.get(), this);
  BIO_set_init(wire.get(), 1);
  auto* const owned = wire.release();
  SSL_set_bio(ssl.get(), owned, owned);
  SSL_set_app_data(ssl.get(), this);
  if (const int mode = SSL_get_verify_mode(ssl.get()); mode != SSL_VERIFY_NONE)
    SSL_set_verify(ssl.get(), mode, &verify);
  if (as == side::server)
    SSL_set_accept_state(ssl.get());
  else
    SSL_set_connect_state(ssl.get());
  return true;
}

/// The error that OpenSSL has queued is the session's from now on.
tl::unexpected<error> tls_session::state::give_up() {
  if (!broken) broken = openssl::session_error(refusal, SSL_get_certificate(ssl.get()));
  return tl::unexpected(*broken);
}

/// Takes as much as the handshake needs, and a piece at most of what follows it.
result<void> tls_session::state::shake_hands(std::span<const std::byte>& from_wire) {
  do {
    const auto piece = from_wire.first(std::min(from_wire.size(), handshake_piece_bytes));
    from_wire = from_wire.subspan(piece.size());
    from = piece;
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl.get());
    if (done != 1 && SSL_get_error(ssl.get(), done) != SSL_ERROR_WANT_READ) return give_up();
    from_wire = {from_wire.data() - from.size(), from_wire.size() + from.size()};
    handshake_bytes += piece.size() - from.size();
    if (done == 1) {
      DLRUN_CHECK(peer || !asks_peer, "a handshake without a peer's certificate does not end well");
      is_established = true;
      return {};
    }
    if (handshake_bytes > handshake_bytes_max) {
      broken = error{error_code::limit_exceeded,
                     fmt::format("the other end sent {} bytes and has not shown who it is", handshake_bytes)};
      return tl::unexpected(*broken);
    }
  } while (!from_wire.empty());
  return {};
}

/// The new key is announced with what is written next.
void tls_session::state::change_key() {
  key_bytes = 0;
  SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
}

// ---- for callers

tls_session::tls_session(std::unique_ptr<state> made)
    : state_(std::move(made)) {}
tls_session::tls_session(tls_session&&) noexcept = default;
tls_session& tls_session::operator=(tls_session&&) noexcept = default;
tls_session::~tls_session() = default;

result<tls_session> tls_session::start(const tls_context& context, side as) {
  auto made = std::make_unique<state>();
  if (context.is_mutual()) made->job = context.name().job;
  if (context.is_pinned()) made->role = context.name().role;
  made->asks_peer = context.is_mutual() || context.is_pinned();
  made->key_bytes_max = context.options().key_bytes_max;
  if (!made->begin(context.current().get(), as))
    return openssl::fail_openssl(error_code::system, "OpenSSL cannot start a TLS session");
  std::span<const std::byte> nothing;
  if (auto begun = made->shake_hands(nothing); !begun) return tl::unexpected(begun.error());
  return tls_session(std::move(made));
}

result<std::size_t> tls_session::read(std::span<const std::byte>& from_wire, std::span<std::byte> into) {
  DLRUN_CHECK(!into.empty(), "a read into nothing would look like one that needs more");
  auto& at = *state_;
  if (at.broken) return tl::unexpected(*at.broken);
  if (!is_established()) {
    if (auto going = at.shake_hands(from_wire); !going) return tl::unexpected(going.error());
    if (!is_established()) return 0;
  }
  at.from = from_wire;
  std::size_t done = 0;
  while (done < into.size() && !at.is_closed) {
    std::size_t some = 0;
    ERR_clear_error();
    const int got = SSL_read_ex(at.ssl.get(), into.data() + done, into.size() - done, &some);
    if (got == 1) {
      done += some;
      continue;
    }
    const auto why = SSL_get_error(at.ssl.get(), got);
    if (why == SSL_ERROR_WANT_READ) break;
    if (why != SSL_ERROR_ZERO_RETURN) return at.give_up();
    at.is_closed = true;
  }
  from_wire = at.is_closed ? std::span<const std::byte>{} : at.from;
  at.from = {};
  return done;
}

result<void> tls_session::feed(std::span<const std::byte> from_wire, std::vector<std::byte>& plaintext) {
  std::array<std::byte, record_bytes> piece;
  for (;;) {
    const auto got = read(from_wire, piece);
    if (!got) return tl::unexpected(got.error());
    plaintext.insert(plaintext.end(), piece.begin(), piece.begin() + *got);
    if (*got < piece.size() && from_wire.empty()) return {};
  }
}

bool tls_session::has_untimely_peer() const { return state_->is_untimely; }

bool tls_session::is_established() const { return state_->is_established; }

const certificate_name& tls_session::peer() const {
  DLRUN_CHECK(is_established() && state_->asks_peer, "a peer is known once it has shown a certificate");
  return *state_->peer;
}

result<channel_binding> tls_session::binding() const {
  DLRUN_CHECK(is_established(), "a session is one of its own once both ends have its keys");
  constexpr std::string_view label = "EXPORTER-Channel-Binding";
  channel_binding made{};
  ERR_clear_error();
  if (SSL_export_keying_material(state_->ssl.get(), reinterpret_cast<unsigned char*>(made.data()),
                                 made.size(), label.data(), label.size(), nullptr, 0, 0) != 1)
    return openssl::fail_openssl(error_code::system, "OpenSSL cannot tell a TLS session from others");
  return made;
}

result<void> tls_session::write(std::span<const std::byte> plaintext) {
  auto& at = *state_;
  if (at.broken) return tl::unexpected(*at.broken);
  DLRUN_CHECK(is_established(), "nothing is said before the peer is known");
  while (!plaintext.empty()) {
    if (at.key_bytes >= at.key_bytes_max) at.change_key();
    std::size_t taken = 0;
    const auto piece = plaintext.first(std::min(plaintext.size(), record_bytes));
    ERR_clear_error();
    if (SSL_write_ex(at.ssl.get(), piece.data(), piece.size(), &taken) != 1) return at.give_up();
    at.key_bytes += taken;
    plaintext = plaintext.subspan(taken);
  }
  return {};
}

std::span<const std::byte> tls_session::wire() const {
  return std::span<const std::byte>(state_->out).subspan(state_->out_sent);
}

void tls_session::sent(std::size_t bytes) {
  auto& at = *state_;
  DLRUN_CHECK(bytes <= at.out.size() - at.out_sent, "more was sent than there is");
  at.out_sent += bytes;
  if (at.out_sent < at.out.size()) return;
  at.out.clear();
  at.out_sent = 0;
}

void tls_session::close() {
  ERR_clear_error();
  if (is_established() && !state_->broken) SSL_shutdown(state_->ssl.get());
}

bool tls_session::is_closed() const { return state_->is_closed; }

result<void> tls_session::end_of_wire() const {
  if (state_->broken) return tl::unexpected(*state_->broken);
  if (state_->is_closed) return {};
  return fail(error_code::system, is_established() ? "the other end was cut off: what came may not be all"
                                                   : "the other end hung up before it had shown who it is");
}

} // namespace dlrun::security
