#include "base/probe_server.hpp"

#include "base/ipv4_address.hpp"

#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <vector>

namespace dlrun::base {
namespace {

using namespace std::chrono_literals;

class probe_server_test : public testing::Test {
protected:
  /// A connection to it that has said that.
  unique_fd connect(const std::string& said = "") const {
    unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto address = server->address();
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(said.size()));
    return socket;
  }

  /// All that comes until it ends.
  static std::string read(const unique_fd& socket) {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t bytes = 0; (bytes = ::recv(socket.get(), part.data(), part.size(), 0)) > 0;)
      all.append(part.data(), static_cast<std::size_t>(bytes));
    return all;
  }

  /// As a kubelet asks.
  std::string ask(const std::string& path, const std::string& method = "GET") const {
    return read(connect(fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-probe/1.33\r\n"
                                    "Accept: */*\r\nConnection: close\r\n\r\n",
                                    method, path)));
  }

  static constexpr auto ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
                             "Connection: close\r\n\r\nok\n";
  static constexpr auto no = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
                             "Content-Length: 3\r\nConnection: close\r\n\r\nno\n";
  static constexpr auto not_here = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

  std::shared_ptr<pulse> own = std::make_shared<pulse>();
  std::unique_ptr<probe_server> server = probe_server::start("127.0.0.1:0", own).value();
};

TEST_F(probe_server_test, tells_whether_the_process_lives_and_is_ready_and_nothing_else) {
  EXPECT_EQ(ask("/livez"), ok);
  EXPECT_EQ(ask("/readyz"), no);
  own->set_ready(true);
  EXPECT_EQ(ask("/readyz"), ok);
  own->agent.turn(std::chrono::steady_clock::now() - 31s);
  EXPECT_EQ(ask("/livez"), no);
  EXPECT_EQ(ask("/readyz"), no);
}

TEST_F(probe_server_test, knows_nothing_else) {
  for (const auto* path : {"/", "/metrics", "/livez/", "/livez?verbose", "/healthz", "livez", "/../livez"})
    EXPECT_EQ(ask(path), not_here) << path;
  for (const auto* method : {"POST", "HEAD", "PUT", "get", ""})
    EXPECT_EQ(ask("/livez", method), not_here) << method;
  EXPECT_EQ(read(connect("\x16\x03\x01\r\n\r\n")), not_here);
}

TEST_F(probe_server_test, takes_a_request_in_parts) {
  const auto socket = connect("GET /li");
  const std::string rest = "vez HTTP/1.1\r\n\r\n";
  EXPECT_EQ(ask("/livez"), ok) << "beside one that says no more yet";
  ASSERT_EQ(::send(socket.get(), rest.data(), rest.size(), 0), static_cast<ssize_t>(rest.size()));
  EXPECT_EQ(read(socket), ok);
}

TEST_F(probe_server_test, takes_no_longer_request_than_it_has_room_for) {
  EXPECT_EQ(read(connect("GET /livez HTTP/1.1\r\n" + std::string(probe_server::request_bytes_max - 21, 'x'))),
            not_here);
}

TEST_F(probe_server_test, answers_although_many_say_nothing) {
  std::vector<unique_fd> silent;
  for (std::size_t i = 0; i < 3 * probe_server::askers_max; ++i) silent.push_back(connect());
  EXPECT_EQ(ask("/livez"), ok);
  EXPECT_EQ(read(silent.front()), "") << "it had to go";
}

TEST_F(probe_server_test, cuts_off_who_does_not_say_what_it_wants) {
  server = probe_server::start("127.0.0.1:0", own, 20ms).value();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(read(connect("GET /livez HTTP/1.1\r\n")), "");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
}

TEST_F(probe_server_test, outlives_who_goes_before_the_answer) {
  for (int i = 0; i < 10; ++i) {
    const auto socket = connect("GET /livez HTTP/1.1\r\n\r\n");
    const linger at_once{1, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  EXPECT_EQ(ask("/livez"), ok);
}

TEST_F(probe_server_test, says_why_it_cannot_listen) {
  const auto place = to_string(server->address());
  const auto taken = probe_server::start(place, own);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, error_code::bad_usage);
  EXPECT_EQ(taken.error().message, "cannot listen at " + place + " for probes: Address already in use");
  for (const auto* wrong : {"7780", ":7780", "localhost:7780", "127.0.0.1:70000", "[::1]:7780"}) {
    const auto refused = probe_server::start(wrong, own);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message,
              fmt::format("cannot listen at {} for probes: it is no IPv4 address with a port, as in "
                          "10.0.0.2:7780",
                          wrong));
  }
}

} // namespace
} // namespace dlrun::base
