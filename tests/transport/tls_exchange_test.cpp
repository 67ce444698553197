// tcp_server and tcp_client over TLS: what they do as without it, and who is kept out.
#include "security/certificate_authority.hpp"
#include "security/tls_session.hpp"
#include "tests/transport/tcp_peers.hpp"
#include "transport/frozen_parameters.hpp"
#include "transport/tcp_client.hpp"
#include "transport/tcp_connection.hpp"
#include "transport/tcp_server.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <gmock/gmock.h>
#include <numeric>
#include <poll.h>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using security::certificate_authority;
using security::tls_context;
using security::tls_session;
using testing::connect_plain;
using ::testing::HasSubstr;
using testing::plain_socket;
using ::testing::StartsWith;

std::shared_ptr<tls_context> context_of(const certificate_authority& authority, const std::string& role,
                                        const security::validity& when = {}) {
  return tls_context::make(authority.issue({authority.job(), role, 0, "here"}, when).value()).value();
}

/// A client that does what a test tells it, over TLS and past the proof.
class tls_peer {
public:
  tls_peer(const std::string& address, const tls_context& context, const run_token& token)
      : socket_(connect_plain(address))
      , session_(tls_session::start(context, tls_session::side::client).value()) {
    while (!session_.is_established()) exchange();
    tcp::hello greeting;
    greeting.server = tcp::parse_address(address).value().server;
    send(greeting);
    tcp::challenge challenge;
    EXPECT_TRUE(receive(challenge));
    send(tcp::answer{tcp::prove(token, "client", greeting, challenge.server)});
  }

  template <class Message>
  void send(const Message& message) {
    EXPECT_TRUE(session_.write(std::as_bytes(std::span(&message, 1))));
    flush();
  }
  template <class Message>
  bool receive(Message& message) {
    while (read_.size() < sizeof message)
      if (!exchange()) return false;
    std::memcpy(static_cast<void*>(&message), read_.data(), sizeof message);
    read_.erase(read_.begin(), read_.begin() + sizeof message);
    return true;
  }
  int socket() const { return socket_.get(); }

private:
  void flush() {
    const auto wire = session_.wire();
    EXPECT_TRUE(socket_.send(wire.data(), wire.size()));
    session_.sent(wire.size());
  }
  bool exchange() {
    flush();
    std::array<std::byte, 4096> some{};
    const auto got = ::recv(socket_.get(), some.data(), some.size(), 0);
    return got > 0 && session_.feed(std::span(some).first(static_cast<std::size_t>(got)), read_);
  }

  plain_socket socket_;
  tls_session session_;
  std::vector<std::byte> read_;
};

class tls_exchange : public ::testing::Test {
protected:
  static clock::time_point far_off() { return clock::now() + 20s; }
  static constexpr std::size_t many = std::size_t{4} << 20; // 16 MiB: many turns of both ends

  frozen_parameters_writer make_frozen(std::size_t floats) const {
    auto made = frozen_parameters_writer::create(floats).value();
    std::iota(made.values().begin(), made.values().end(), 1.0F);
    made.seal_as(timeline_id{1}, version_id{1});
    return made;
  }
  static std::future<result<segment>> ask(segment_fetches& who, const std::string& address, segment_id id,
                                          std::size_t floats, clock::time_point deadline = far_off()) {
    auto got = std::make_shared<std::promise<result<segment>>>();
    auto answer = got->get_future();
    EXPECT_TRUE(who.fetch(address, id, frozen_parameters_bytes(floats), frozen_part(floats), deadline,
                          [got](result<segment> one) { got->set_value(std::move(one)); }));
    return answer;
  }
  static void expect_same(const result<segment>& got, frozen_parameters_writer& sent, std::size_t floats) {
    ASSERT_TRUE(got) << got.error().message;
    const auto values = frozen_parameters(*got, floats, timeline_id{1}, version_id{1}).value();
    EXPECT_EQ(std::memcmp(values.data(), sent.values().data(), values.size_bytes()), 0);
  }
  /// How a fetch from `at` by a client that shows `mine` fails.
  error failure_of(std::shared_ptr<const tls_context> mine, const std::string& at) const {
    const auto who = tcp_client::start({.token = token, .tls = std::move(mine)}).value();
    const auto got = ask(*who, at, segment_id{1}, 4).get();
    EXPECT_FALSE(got);
    return got ? error{} : got.error();
  }
  std::unique_ptr<tcp_server> serve(std::chrono::milliseconds idle = 10s) const {
    return tcp_server::start({.token = token, .tls = of_shard, .idle = idle}).value();
  }

  run_token token = run_token::random().value();
  certificate_authority authority = certificate_authority::make("j1").value();
  std::shared_ptr<tls_context> of_shard = context_of(authority, "ps_shard");
  std::shared_ptr<tls_context> of_worker = context_of(authority, "worker");
  std::unique_ptr<tcp_server> server = serve();
  std::unique_ptr<tcp_client> client = tcp_client::start({.token = token, .tls = of_worker}).value();
};

// ---- what is fetched

TEST_F(tls_exchange, much_comes_whole_to_many_at_once) {
  auto frozen = make_frozen(many);
  const auto id = server->offer(frozen.shared()).value();
  const auto other = tcp_client::start({.token = token, .tls = of_worker}).value();
  std::vector<std::future<result<segment>>> answers;
  for (int i = 0; i < 3; ++i)
    for (auto* who : {client.get(), other.get()}) answers.push_back(ask(*who, server->address(), id, many));
  for (auto& one : answers) expect_same(one.get(), frozen, many);
}

TEST_F(tls_exchange, requests_that_come_in_one_record_are_all_answered) {
  auto frozen = make_frozen(1000);
  const auto id = server->offer(frozen.shared()).value();
  std::vector<std::future<result<segment>>> answers;
  for (int i = 0; i < 500; ++i) answers.push_back(ask(*client, server->address(), id, 1000));
  for (auto& one : answers) expect_same(one.get(), frozen, 1000);
}

TEST_F(tls_exchange, what_is_not_offered_any_more_is_refused_over_the_same_connection) {
  auto frozen = make_frozen(10);
  const auto id = server->offer(frozen.shared()).value();
  EXPECT_TRUE(ask(*client, server->address(), id, 10).get());
  server->withdraw(id);
  EXPECT_EQ(ask(*client, server->address(), id, 10).get().error().code, error_code::role_lost);
}

TEST_F(tls_exchange, memory_of_any_kind_is_sent_and_put_where_it_is_wanted) {
  const auto given = std::make_shared<std::vector<std::byte>>(std::size_t{9} << 20);
  for (std::size_t i = 0; i < given->size(); ++i) (*given)[i] = static_cast<std::byte>(i * 31 >> 3);
  ASSERT_TRUE(server->offer_memory_as(segment_id{7}, *given, given));
  const auto mine = std::make_shared<std::vector<std::byte>>(given->size(), std::byte{0xEE});
  constexpr segment_piece piece{.offset = 1001, .bytes = std::size_t{8} << 20};
  std::promise<result<segment>> came;
  ASSERT_TRUE(client->fetch_into({*mine, mine}, server->address(), segment_id{7},
                                 {.marks = {}, .values = piece}, far_off(),
                                 [&](result<segment> one) { came.set_value(std::move(one)); }));
  const auto got = came.get_future().get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->bytes().data(), mine->data());
  for (std::size_t i = 0; i < mine->size(); ++i) {
    const bool is_wanted = i >= piece.offset && i < piece.offset + piece.bytes;
    ASSERT_EQ((*mine)[i], is_wanted ? (*given)[i] : std::byte{0xEE}) << i;
  }
}

TEST_F(tls_exchange, memory_under_an_id_is_given_in_place_of_what_was_there_before) {
  const auto offer = [&](char letter) {
    const auto text = std::make_shared<std::string>(8, letter);
    ASSERT_TRUE(server->offer_memory_as(segment_id{1}, std::as_bytes(std::span<const char>{*text}), text));
  };
  const auto fetch = [&] {
    std::promise<result<segment>> came;
    EXPECT_TRUE(client->fetch(server->address(), segment_id{1}, 8, {.marks = {}, .values = {0, 8}}, far_off(),
                              [&](result<segment> one) { came.set_value(std::move(one)); }));
    return static_cast<char>(came.get_future().get().value().bytes()[3]);
  };
  offer('a');
  EXPECT_EQ(fetch(), 'a');
  offer('b');
  EXPECT_EQ(fetch(), 'b');
}

TEST_F(tls_exchange, new_certificates_are_for_new_connections_and_the_old_ones_stay) {
  auto frozen = make_frozen(1000);
  const auto id = server->offer(frozen.shared()).value();
  EXPECT_TRUE(ask(*client, server->address(), id, 1000).get());
  const auto next = certificate_authority::make("j1").value(); // nobody trusts the one before any more
  ASSERT_TRUE(of_shard->renew(next.issue(of_shard->name()).value()));
  EXPECT_TRUE(ask(*client, server->address(), id, 1000).get());
  EXPECT_EQ(failure_of(of_worker, server->address()).code, error_code::fenced);
  ASSERT_TRUE(of_worker->renew(next.issue(of_worker->name()).value()));
  const auto later = tcp_client::start({.token = token, .tls = of_worker}).value();
  EXPECT_TRUE(ask(*later, server->address(), id, 1000).get());
}

// ---- where it listens

TEST_F(tls_exchange, the_address_says_that_it_wants_tls) {
  EXPECT_THAT(server->address(), StartsWith("tls://127.0.0.1:"));
  const auto far = "tls://10.0.0.1:80/" + token.to_hex();
  EXPECT_EQ(tcp::to_string(tcp::parse_address(far).value()), far);
}

TEST_F(tls_exchange, an_address_that_cannot_be_served_is_refused_with_the_way_out) {
  const auto refusal = [&](const std::string& at, std::shared_ptr<const tls_context> tls) {
    return tcp_server::start({.token = token, .listen = at, .tls = std::move(tls)}).error();
  };
  EXPECT_THAT(refusal("10.0.0.1", nullptr).message, HasSubstr("without TLS"));
  for (const std::string none : {"0.0.0.0", "host-b", "", "127.0.0.1:80"}) {
    EXPECT_EQ(refusal(none, of_shard).code, error_code::bad_usage) << none;
    EXPECT_THAT(refusal(none, of_shard).message, HasSubstr("in numbers")) << none;
  }
  EXPECT_EQ(refusal("192.0.2.1", of_shard).code, error_code::system) << "not of this host";
}

// ---- strangers

TEST_F(tls_exchange, who_is_of_another_authority_or_has_no_certificate_gets_nothing) {
  const auto other = certificate_authority::make("j1").value();
  const auto stranger = failure_of(context_of(other, "worker"), server->address());
  EXPECT_EQ(stranger.code, error_code::fenced);
  EXPECT_THAT(stranger.message, HasSubstr(server->address()));
  const auto other_job = certificate_authority::make("j2").value();
  EXPECT_EQ(failure_of(context_of(other_job, "worker"), server->address()).code, error_code::fenced);
  const auto none = failure_of(nullptr, server->address());
  EXPECT_EQ(none.code, error_code::fenced);
  EXPECT_THAT(none.message, HasSubstr("has no certificate"));
}

TEST_F(tls_exchange, who_has_an_expired_certificate_hears_so) {
  const auto late = context_of(authority, "worker", {std::chrono::system_clock::now() - 2h, 1h});
  const auto why = failure_of(late, server->address());
  EXPECT_EQ(why.code, error_code::fenced);
  EXPECT_THAT(why.message, HasSubstr("our certificate has expired"));
}

TEST_F(tls_exchange, a_certificate_alone_is_not_enough_without_the_runs_token) {
  const auto other = tcp_client::start({.token = run_token::random().value(), .tls = of_worker}).value();
  EXPECT_EQ(ask(*other, server->address(), segment_id{1}, 4).get().error().code, error_code::fenced);
}

TEST_F(tls_exchange, who_speaks_no_tls_or_nothing_is_hung_up_on) {
  const auto plain = connect_plain(server->address());
  tcp::hello greeting;
  greeting.server = tcp::parse_address(server->address()).value().server;
  ASSERT_TRUE(plain.send(greeting));
  std::array<char, 64> alert{};
  EXPECT_FALSE(plain.receive(alert)) << "no challenge, only why not";
  const auto hasty = serve(200ms);
  EXPECT_TRUE(connect_plain(hasty->address()).hangs_up());
}

TEST_F(tls_exchange, a_stranger_has_five_seconds_however_patient_the_server_is) {
  const auto now = clock::now();
  const auto deadline = [&](std::chrono::milliseconds idle) {
    const tcp::connection one(tcp::stream(tcp::make_socket().value()), token, {}, {}, idle, now);
    return one.deadline() - now;
  };
  EXPECT_EQ(deadline(60s), 5s);
  EXPECT_EQ(deadline(200ms), 200ms);
}

TEST_F(tls_exchange, a_plain_server_is_not_taken_for_one_with_tls) {
  const auto plain = tcp_server::start({.token = token}).value();
  auto pretended = plain->address();
  pretended.replace(0, 3, "tls");
  EXPECT_THAT(failure_of(of_worker, pretended).message, HasSubstr(pretended)) << "it hangs up";
}

// ---- peers that are slow or gone

TEST_F(tls_exchange, who_does_not_take_what_it_asked_for_is_hung_up_on_and_others_are_served) {
  constexpr std::size_t floats = std::size_t{16} << 20; // 64 MiB: far more than sockets hold
  auto large = make_frozen(floats);
  const auto slow = serve(2s);
  tcp::request asked;
  asked.segment = slow->offer(large.shared()).value().value;
  asked.bytes = frozen_parameters_bytes(floats);
  asked.part = frozen_part(floats);
  tls_peer lazy(slow->address(), *of_worker, token);
  lazy.send(asked);
  auto frozen = make_frozen(1000);
  const auto id = slow->offer(frozen.shared()).value();
  expect_same(ask(*client, slow->address(), id, 1000).get(), frozen, 1000);
  pollfd over{lazy.socket(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&over, 1, 20'000), 1);
}

TEST_F(tls_exchange, a_server_that_is_gone_is_told_at_once) {
  auto frozen = make_frozen(1000);
  const auto id = server->offer(frozen.shared()).value();
  EXPECT_TRUE(ask(*client, server->address(), id, 1000).get());
  const auto before = server->address();
  server.reset();
  EXPECT_EQ(ask(*client, before, id, 1000).get().error().code, error_code::system);
}

TEST_F(tls_exchange, a_server_that_hangs_in_the_handshake_delays_nobody_else) {
  auto frozen = make_frozen(1000);
  const auto id = server->offer(frozen.shared()).value();
  const testing::scripted_server silent([](auto&, int) {});
  auto at = silent.address();
  at.replace(0, 3, "tls");
  auto late = ask(*client, at, segment_id{1}, 1000, clock::now() + 300ms);
  EXPECT_TRUE(ask(*client, server->address(), id, 1000).get());
  EXPECT_EQ(late.get().error().code, error_code::timed_out);
}

} // namespace
} // namespace dlrun::transport
