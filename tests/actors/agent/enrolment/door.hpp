/// A door at which hosts join, and peers that come to it.
#pragma once

#include "actors/agent/enrolment/enrolment_client.hpp"
#include "actors/agent/enrolment/enrolment_server.hpp"
#include "base/ipv4_address.hpp"
#include "security/certificate_authority.hpp"
#include "tests/actors/told.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace dlrun::agent {

using namespace std::chrono_literals;

inline constexpr auto patience_ms = 20'000;

/// Who knows the address and nothing else.
class stranger {
public:
  explicit stranger(const std::string& address)
      : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const auto where = base::parse_ipv4_address(address).value();
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  }
  bool say(std::string_view bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Says the same again and again, until the other end has closed. @returns how many bytes went
  std::size_t say_until_closed(const std::string& bytes) const {
    std::size_t sum = 0;
    while (!is_closed(0)) {
      const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) sum += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN) return sum;
    }
    return sum;
  }
  bool is_closed(int within_ms = patience_ms) const {
    char bytes[4096];
    for (;;) {
      pollfd watched{socket_.get(), POLLIN, 0};
      if (::poll(&watched, 1, within_ms) != 1) return false;
      if (::recv(socket_.get(), bytes, sizeof bytes, 0) <= 0) return true;
    }
  }

private:
  base::unique_fd socket_;
};

/// A door, and what becomes of those who come to it.
class enrolment_server_test : public testing::Test {
protected:
  enrolment_server_test() { begin({}); }
  void TearDown() override {
    server = nullptr;
    decider.join();
  }

  void begin(enrolment_options options) {
    const auto own = authority.issue({"j1", "agent", 0, "alpha"}, root_validity).value();
    options.door = security::tls_context::make_door(own).value();
    options.pin = security::pin_of(own.authority_pem).value();
    options.version = "1.2.3";
    options.strangers_told_each = 0ms;
    enrolment_events events{
        .admit =
            [this](const auto& who, auto done) {
              asked.add(who.name() + " " + who.address() + " " + std::to_string(who.secret().size()));
              if (decider.joinable()) decider.join();
              decider = std::thread{[this, name = who.name(), done] { // as the agent's thread does
                if (refusal.empty())
                  done(admission{name, 3, 7});
                else
                  done(fail(refusal_code, refusal));
              }};
            },
        .bundle = [this](const auto& who, const auto& as) -> result<std::string> {
          return written_message(bundle_word, "1.2.3", bundle.empty() ? who.name() + as.host : bundle);
        },
        .ended = [this](const auto& who, const auto& why) { ended.add(who.host + ": " + why); },
        .refused = [this](const auto& text) { refused.add(text); }};
    server.reset();
    server = enrolment_server::start(listen_for_enrolments("127.0.0.1:0").value(), options, std::move(events))
                 .value();
  }
  enrolment_wish wish(const std::string& name) {
    enrolment_wish made{.root = server->address(),
                        .token = parse_token(server->make_token(60s).value().reveal()).value(),
                        .version = "1.2.3",
                        .as = {},
                        .bundle_bytes_max = 1 << 22};
    made.as.set_name(name);
    return made;
  }
  static std::string read_all(int fd) {
    std::string all(1 << 22, '\0');
    all.resize(static_cast<std::size_t>(::read(fd, all.data(), all.size())));
    return all;
  }
  static std::string problem(const result<enrolled_host>& how) {
    EXPECT_FALSE(how.has_value());
    return how ? "" : how.error().message;
  }

  security::certificate_authority authority = security::certificate_authority::make("j1").value();
  security::validity root_validity{};
  test::told asked, ended, refused;
  std::string refusal, bundle;
  error_code refusal_code = error_code::bad_usage;
  std::thread decider{[] {}};
  std::unique_ptr<enrolment_server> server; ///< last but for what its thread does not use
};

/// In TLS, but no host: says what it likes.
class loud_visitor {
public:
  explicit loud_visitor(const enrolment_wish& wish) {
    auto context = security::tls_context::make_pinned(wish.token.pin, "agent").value();
    session_.emplace(security::tls_session::start(*context, security::tls_session::side::client).value());
    const auto where = base::parse_ipv4_address(wish.root).value();
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    while (!session_->is_established() && step()) {
    }
    EXPECT_TRUE(session_->is_established());
  }
  void say(std::string_view text) {
    ASSERT_TRUE(session_->write(std::as_bytes(std::span{text})));
    send();
  }
  const security::tls_session& session() const { return *session_; }
  /// One message with its line, of so many bytes.
  std::string hear_message(std::string_view line, std::size_t bytes) {
    while (heard_.size() < line.size() + bytes && step()) {
    }
    std::string text{reinterpret_cast<const char*>(heard_.data()), heard_.size()};
    EXPECT_EQ(text.substr(0, line.size()), line);
    return text.substr(std::min(line.size(), text.size()));
  }
  /// What the door says until it closes.
  std::string hear() {
    while (step()) {
    }
    return {reinterpret_cast<const char*>(heard_.data()), heard_.size()};
  }

private:
  void send() {
    const auto wire = session_->wire();
    const auto sent = ::send(socket_.get(), wire.data(), wire.size(), MSG_NOSIGNAL);
    if (sent > 0) session_->sent(static_cast<std::size_t>(sent));
  }
  bool step() {
    send();
    std::array<std::byte, 4096> piece;
    const auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    return got > 0 &&
           session_->feed(std::span{piece}.first(static_cast<std::size_t>(got)), heard_).has_value();
  }
  base::unique_fd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::optional<security::tls_session> session_;
  std::vector<std::byte> heard_;
};

} // namespace dlrun::agent
