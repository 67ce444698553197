#include "actors/link/tls_carrier.hpp"

#include "security/certificate_authority.hpp"
#include "tests/actors/told.hpp"

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace dlrun::link {
namespace {

using testing::HasSubstr;
constexpr auto patience = std::chrono::seconds(20);

/// A process of a job: a carrier, and what it accepted.
struct carried_process {
  carried_process(const security::certificate_authority& authority, const security::certificate_name& name,
                  std::chrono::milliseconds handshake_deadline = std::chrono::seconds(5)) {
    auto identity = security::tls_context::make(authority.issue(name).value()).value();
    carrier = tls_carrier::start(
                  {.host = "127.0.0.1", .identity = identity, .handshake_deadline = handshake_deadline},
                  [this](carried_socket one) {
                    peers.add(security::describe(one.peer));
                    accepted.set_value(std::move(one));
                  })
                  .value();
  }
  result<carried_socket> dial(const std::string& address) {
    auto done = std::make_shared<std::promise<result<carried_socket>>>();
    carrier->dial(address, [done](result<carried_socket> how) { done->set_value(std::move(how)); });
    return done->get_future().get();
  }

  test::told peers;
  std::promise<carried_socket> accepted;
  std::unique_ptr<tls_carrier> carrier; ///< last: its thread uses the others
};

bool wait_for(int socket, short what) {
  pollfd one{socket, what, 0};
  return ::poll(&one, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) == 1;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty() && wait_for(socket, POLLOUT)) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  EXPECT_TRUE(bytes.empty());
}

std::string receive(int socket, std::size_t bytes) {
  std::string got(bytes, '\0');
  std::size_t there = 0;
  while (there < bytes && wait_for(socket, POLLIN)) {
    const auto size = ::recv(socket, got.data() + there, bytes - there, 0);
    if (size == 0) break;
    if (size > 0) there += static_cast<std::size_t>(size);
  }
  got.resize(there);
  return got;
}

bool is_closed(int socket) { return wait_for(socket, POLLIN) && receive(socket, 1).empty(); }

class tls_carrier_test : public testing::Test {
protected:
  static security::certificate_name name(const std::string& role, const std::string& job = "j1") {
    return {job, role, 0, "alpha"};
  }
  security::certificate_authority authority = security::certificate_authority::make("j1").value();
  carried_process agent{authority, name("agent")};
  carried_process worker{authority, name("worker")};
};

TEST_F(tls_carrier_test, both_ends_know_who_the_other_is) {
  const auto there = worker.dial(agent.carrier->address());
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_EQ(there->peer, name("agent"));
  EXPECT_EQ(agent.accepted.get_future().get().peer, name("worker"));
}

TEST_F(tls_carrier_test, what_goes_in_at_one_end_comes_out_at_the_other) {
  const auto there = worker.dial(agent.carrier->address());
  ASSERT_TRUE(there.has_value()) << there.error().message;
  const auto here = agent.accepted.get_future().get();
  std::string bytes(5'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 >> 3);
  auto sender = std::thread{[&] { send_all(there->socket.get(), bytes); }};
  auto answerer = std::thread{[&] { send_all(here.socket.get(), bytes); }};
  auto other = std::async(std::launch::async, [&] { return receive(there->socket.get(), bytes.size()); });
  EXPECT_TRUE(receive(here.socket.get(), bytes.size()) == bytes);
  EXPECT_TRUE(other.get() == bytes);
  sender.join();
  answerer.join();
}

TEST_F(tls_carrier_test, an_end_that_is_closed_closes_the_other) {
  auto there = worker.dial(agent.carrier->address());
  ASSERT_TRUE(there.has_value()) << there.error().message;
  const auto here = agent.accepted.get_future().get();
  send_all(there->socket.get(), "last words");
  there->socket.reset();
  EXPECT_EQ(receive(here.socket.get(), 10), "last words");
  EXPECT_TRUE(is_closed(here.socket.get()));
}

TEST_F(tls_carrier_test, the_end_of_a_carrier_closes_what_it_carried) {
  const auto there = worker.dial(agent.carrier->address());
  ASSERT_TRUE(there.has_value()) << there.error().message;
  const auto here = agent.accepted.get_future().get();
  worker.carrier.reset();
  EXPECT_TRUE(is_closed(here.socket.get()));
}

TEST_F(tls_carrier_test, another_job_is_refused_at_both_ends) {
  const auto other = security::certificate_authority::make("j2").value();
  carried_process stranger{other, name("worker", "j2")};
  const auto there = stranger.dial(agent.carrier->address());
  ASSERT_FALSE(there.has_value());
  EXPECT_EQ(there.error().code, error_code::fenced);
  EXPECT_TRUE(agent.peers.lines().empty());
}

TEST_F(tls_carrier_test, nobody_there_is_an_error_at_once) {
  const auto address = agent.carrier->address();
  agent.carrier.reset();
  const auto there = worker.dial(address);
  ASSERT_FALSE(there.has_value());
  EXPECT_EQ(there.error().code, error_code::system);
  EXPECT_THAT(there.error().message, HasSubstr(address));
}

TEST_F(tls_carrier_test, what_is_no_address_is_refused) {
  for (const auto* wrong : {"", "127.0.0.1", "localhost:80", "127.0.0.1:x", ":80"}) {
    const auto there = worker.dial(wrong);
    ASSERT_FALSE(there.has_value()) << wrong;
    EXPECT_EQ(there.error().code, error_code::bad_usage) << wrong;
  }
}

TEST_F(tls_carrier_test, an_address_of_another_host_cannot_be_listened_on) {
  auto identity = security::tls_context::make(authority.issue(name("agent")).value()).value();
  const auto made = tls_carrier::start({.host = "192.0.2.7", .identity = identity}, [](carried_socket) {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, error_code::bad_usage);
  EXPECT_THAT(made.error().message, HasSubstr("192.0.2.7"));
}

TEST_F(tls_carrier_test, knows_processes_of_its_own_host_by_their_addresses) {
  EXPECT_TRUE(worker.carrier->is_here(agent.carrier->address()));
  EXPECT_FALSE(worker.carrier->is_here("192.0.2.7:4711"));
}

TEST_F(tls_carrier_test, who_does_not_show_who_it_is_is_dropped_in_time) {
  carried_process patient{authority, name("agent"), std::chrono::milliseconds(100)};
  const auto port = static_cast<std::uint16_t>(
      std::stoi(patient.carrier->address().substr(patient.carrier->address().rfind(':') + 1)));
  for (const auto* words : {"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01"}) {
    const base::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    send_all(socket.get(), words);
    std::string answer = receive(socket.get(), 100'000); // an alert at most, until it is closed
    EXPECT_LT(answer.size(), 200U);
  }
  EXPECT_TRUE(patient.peers.lines().empty());
}

} // namespace
} // namespace dlrun::link
