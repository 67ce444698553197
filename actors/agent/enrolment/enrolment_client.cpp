#include "actors/agent/enrolment/enrolment_client.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "base/ipv4_address.hpp"
#include "base/os_error.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

namespace dlrun::agent {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = std::size_t{64} << 10;
constexpr auto last_words_patience = std::chrono::seconds(2);

/// A socket of which something is waited for, until a time, or until nobody wants that any more.
struct awaited_socket {
  int socket;
  int stop; ///< see enrolment_wish
  clock::time_point until;

  /// @returns timed_out with `late`, or interrupted.
  result<void> wait_for(short events, std::string_view late) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
      if (left <= 0) return fail(error_code::timed_out, std::string{late});
      pollfd watched[] = {{socket, events, 0}, {stop, POLLIN, 0}};
      const int found = ::poll(watched, std::size(watched), static_cast<int>(left));
      if (found < 0 && errno != EINTR) return base::fail_errno("cannot wait for the root");
      if (found <= 0) continue;
      if (watched[1].revents != 0) return fail(error_code::interrupted, "it was asked to end");
      return {};
    }
  }
};

bool is_port(std::string_view text) {
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc{} && end == text.data() + text.size() && number >= 1 && number <= 65535;
}

/// All addresses that its name has.
result<std::vector<sockaddr_in>> find_root(const std::string& root) {
  const auto colon = root.rfind(':');
  const auto name = root.substr(0, colon);
  if (colon == root.npos || name.empty() || name.find(':') != name.npos || !is_port(root.substr(colon + 1)))
    return fail(
        error_code::bad_usage,
        fmt::format("--join {}: expected HOST:PORT, an IPv4 address or a name of one, and the port that "
                    "'join.listen' names in the list of hosts, as in 10.0.0.1:7700",
                    root));
  addrinfo wanted{};
  wanted.ai_family = AF_INET; // as all between hosts
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int why = ::getaddrinfo(name.c_str(), root.substr(colon + 1).c_str(), &wanted, &found); why != 0)
    return fail(error_code::system,
                fmt::format("nobody knows an IPv4 address of '{}' ({})", name, ::gai_strerror(why)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{found, ::freeaddrinfo};
  std::vector<sockaddr_in> all;
  for (const auto* one = found; one != nullptr; one = one->ai_next)
    std::copy_n(reinterpret_cast<const char*>(one->ai_addr), sizeof(sockaddr_in),
                reinterpret_cast<char*>(&all.emplace_back()));
  return all;
}

result<base::unique_fd> connect_to_root(const sockaddr_in& address, const enrolment_wish& wish) {
  base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket) return base::fail_errno("cannot create a TCP socket");
  const auto refused = [&](int why) {
    return base::fail_errno(
        fmt::format("cannot connect to {} (is the job there, and does its list of hosts have 'join:'?)",
                    wish.root),
        why);
  };
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS)
    return refused(errno);
  const awaited_socket awaited{socket.get(), wish.stop, clock::now() + wish.connect_deadline};
  if (auto there = awaited.wait_for(
          POLLOUT,
          fmt::format("{} does not answer: is that where the root listens, and does a firewall let it "
                      "pass?",
                      wish.root));
      !there)
    return tl::unexpected(there.error());
  int why = 0;
  socklen_t size = sizeof why;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
  if (why != 0) return refused(why);
  return socket;
}

std::string own_number(int socket) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  char text[INET_ADDRSTRLEN] = "";
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size) == 0)
    ::inet_ntop(AF_INET, &here.sin_addr, text, sizeof text);
  return text;
}

/// Bytes to the root and from it, until a time.
class told_root {
public:
  told_root(awaited_socket socket, security::tls_session& session)
      : socket_{socket}
      , session_{session} {}

  result<void> send_wire() {
    while (!session_.wire().empty()) {
      const auto wire = session_.wire();
      const auto sent = ::send(socket_.socket, wire.data(), wire.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        session_.sent(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EINTR) {
        if (auto room = socket_.wait_for(POLLOUT, "the root takes nothing more"); !room) return room;
      } else {
        return base::fail_errno("the connection to the root is lost");
      }
    }
    return {};
  }

  /// Takes what comes next.
  result<void> hear(std::vector<std::byte>& plain) {
    if (auto sent = send_wire(); !sent) return sent;
    if (auto more = socket_.wait_for(POLLIN, "the root does not answer"); !more) return more;
    const auto got = ::recv(socket_.socket, piece_.data(), piece_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0) return base::fail_errno("the connection to the root is lost");
    if (got == 0) return fail(error_code::system, "the root has closed the connection");
    auto fed = session_.feed(std::span{piece_}.first(static_cast<std::size_t>(got)), plain);
    if (!fed) static_cast<void>(send_wire()); // the alert that says why
    return fed;
  }

private:
  awaited_socket socket_;
  security::tls_session& session_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(piece_bytes);
};

/// With a token who is at the other end is whom that names; else this is fenced. By a clock that is
/// wrong nobody is.
result<void> shake_hands(told_root& root, const security::tls_session& session) {
  std::vector<std::byte> nothing;
  while (!session.is_established()) {
    auto heard = root.hear(nothing);
    if (!heard && session.has_untimely_peer()) return heard;
    if (!heard && heard.error().code == error_code::fenced)
      return fail(
          error_code::fenced,
          fmt::format("who answers there is not the root that the token is of: {}; the job may have "
                      "been started again since: 'dlrun token RUN', where the root runs, makes another",
                      heard.error().message));
    if (!heard) return heard;
  }
  return {};
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A whole message, with its line.
struct heard_message {
  join_head head;
  std::vector<std::byte> whole;

  std::string_view body() const { return text_of(whole).substr(whole.size() - head.bytes); }
};

error no_answer() {
  return {error_code::protocol, "what the root answers is no answer to a request to join"};
}

error said_at(const enrolment_wish& wish, const error& why) {
  return {why.code, fmt::format("{}: {}", wish.root, why.message)};
}

result<heard_message> hear_message(told_root& root, std::size_t bytes_max) {
  std::vector<std::byte> heard;
  for (;;) {
    const auto text = text_of(heard);
    const auto end = text.find('\n');
    auto head = end == text.npos ? std::nullopt : parse_join_head(text.substr(0, end));
    if (head ? head->bytes > bytes_max : end != text.npos || text.size() > join_line_max)
      return tl::unexpected(no_answer());
    if (head && heard.size() >= end + 1 + head->bytes) {
      heard.resize(end + 1 + head->bytes);
      return heard_message{std::move(*head), std::move(heard)};
    }
    if (auto more = root.hear(heard); !more) return tl::unexpected(more.error());
  }
}

/// Each proves to the other that it has the key, in this session: nothing else was said before. Who
/// has proven nothing ends nothing, whatever it says: the root may come there yet.
result<void> prove_both(const join_key& key, told_root& root, security::tls_session& session) {
  const auto binding = session.binding();
  if (!binding) return tl::unexpected(binding.error());
  const auto own = key.proof(join_key::side::host, *binding);
  const auto message =
      written_message(key_word, key_version, {reinterpret_cast<const char*>(own.data()), own.size()});
  if (auto said = session.write(std::as_bytes(std::span{message})); !said) return said;
  const auto answer = hear_message(root, join_line_max);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->head.word == refused_word)
    return fail(error_code::protocol,
                "who answers there does not take this key: the list of hosts names another one as "
                "'join.key_file', or none, or another job listens there");
  if (answer->head.word == key_word && key.is_proof(answer->body(), join_key::side::root, *binding))
    return {};
  return fail(error_code::protocol,
              "who answers there is not the root: it does not prove that it has the key");
}

result<void> ask_to_join(const enrolment_wish& wish, int socket, security::tls_session& session) {
  auto request = wish.as;
  if (!wish.key) request.set_secret(wish.token.secret.reveal());
  if (request.address().empty()) request.set_address(own_number(socket));
  const security::secret_text message{written_message(join_word, wish.version, request.SerializeAsString())};
  return session.write(std::as_bytes(std::span{message.reveal()}));
}

/// The whole answer of a root that is known. @returns the root's words as bad_usage when it
/// refuses, or as in_use when it may be asked again.
result<std::vector<std::byte>> hear_answer(const enrolment_wish& wish, told_root& root) {
  auto heard = hear_message(root, wish.bundle_bytes_max);
  if (!heard) return tl::unexpected(said_at(wish, heard.error()));
  if (heard->head.word == bundle_word) return std::move(heard->whole);
  const bool may_retry = heard->head.word == not_now_word;
  if (!may_retry && heard->head.word != refused_word) return tl::unexpected(said_at(wish, no_answer()));
  return fail(may_retry && wish.key ? error_code::in_use : error_code::bad_usage,
              fmt::format("the root at {} refuses: {}", wish.root, heard->body()));
}

/// Over a connection that is there.
result<std::vector<std::byte>> talk(const enrolment_wish& wish, int socket, security::tls_session& session) {
  told_root root{{socket, wish.stop, clock::now() + wish.answer_deadline}, session};
  auto known = shake_hands(root, session);
  if (known && wish.key) known = prove_both(*wish.key, root, session);
  if (!known) return tl::unexpected(said_at(wish, known.error()));
  if (auto asked = ask_to_join(wish, socket, session); !asked) return tl::unexpected(asked.error());
  return hear_answer(wish, root);
}

} // namespace

void enrolment_line::tell_end(const std::string& why) {
  const auto text = std::string_view{why}.substr(0, join_reason_bytes_max);
  if (!session_.write(std::as_bytes(std::span{text}))) return;
  session_.close();
  const awaited_socket awaited{socket_.get(), -1, clock::now() + last_words_patience};
  static_cast<void>(told_root{awaited, session_}.send_wire());
}

namespace {

result<enrolled_host> enrol_at_one(const sockaddr_in& address, const enrolment_wish& wish) {
  auto socket = connect_to_root(address, wish);
  if (!socket) return tl::unexpected(socket.error());
  auto context = wish.key ? security::tls_context::make_unverified()
                          : security::tls_context::make_pinned(wish.token.pin, "agent");
  if (!context) return tl::unexpected(context.error());
  auto session = security::tls_session::start(**context, security::tls_session::side::client);
  if (!session) return tl::unexpected(session.error());
  const auto answer = talk(wish, socket->get(), *session);
  if (!answer) return tl::unexpected(answer.error());
  auto bundle = make_bootstrap(text_of(*answer));
  if (!bundle) return tl::unexpected(bundle.error());
  return enrolled_host{std::move(*bundle), enrolment_line{std::move(*socket), std::move(*session)}};
}

/// May the root be at another address of its name?
bool may_be_elsewhere(error_code code) {
  return code == error_code::system || code == error_code::timed_out || code == error_code::protocol ||
         code == error_code::fenced;
}

} // namespace

result<enrolled_host> enrol_at(std::span<const sockaddr_in> roots, const enrolment_wish& wish) {
  error last{error_code::system, fmt::format("nobody knows an address of {}", wish.root)};
  for (const auto& root : roots) {
    auto enrolled = enrol_at_one(root, wish);
    if (enrolled) return enrolled;
    last = std::move(enrolled.error());
    if (!may_be_elsewhere(last.code)) break;
  }
  if (last.code == error_code::fenced) last.code = error_code::bad_usage; // a token is of one root
  return tl::unexpected(std::move(last));
}

result<enrolled_host> enrol(const enrolment_wish& wish) {
  const auto roots = find_root(wish.root);
  if (!roots) return tl::unexpected(roots.error());
  return enrol_at(*roots, wish);
}

std::string way_to(const std::string& root) {
  const auto found = find_root(root);
  if (!found) return found.error().message;
  std::vector<std::string> ways;
  for (const auto& one : *found) {
    const base::unique_fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)}; // connect() sends nothing
    const bool leads = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&one), sizeof one) == 0;
    ways.push_back(leads ? fmt::format("from {} to {}", own_number(socket.get()), base::to_string(one))
                         : fmt::format("to {}, to which this host has no route", base::to_string(one)));
  }
  return fmt::format("{}", fmt::join(ways, ", and "));
}

} // namespace dlrun::agent
