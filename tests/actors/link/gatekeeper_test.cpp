#include "tests/actors/link/gate_test.hpp"
#include "tests/actors/link/raw_peer.hpp"

#include <future>
#include <gmock/gmock.h>

namespace dlrun::link {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;
using test::raw_peer;

const peer_id coordinator{{role_kind::coordinator, 0}, {3}};
const peer_id worker{{role_kind::worker, 1}, {8}};

class gatekeeper_test : public test::gate_test {
protected:
  std::unique_ptr<gatekeeper> open(const peer_id& self, gatekeeper_options options = {}) {
    options.token = token;
    options.self = self;
    return start(options);
  }

  transport::run_token token{{1, 2, 3}};
};

TEST_F(gatekeeper_test, both_ends_learn_who_the_other_is) {
  const auto here = open(coordinator);
  const auto there = open(worker);
  const auto dialled = dial(*there, here->address(), coordinator);
  ASSERT_TRUE(dialled) << dialled.error().message;
  EXPECT_EQ(dialled->peer, coordinator);
  const auto taken = wait_for_one();
  EXPECT_EQ(taken.peer, worker);
  ASSERT_EQ(::send(dialled->socket.get(), "hi", 2, 0), 2);
  pollfd readable{taken.socket.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 60'000), 1);
  char word[2];
  EXPECT_EQ(::recv(taken.socket.get(), word, 2, 0), 2);
}

TEST_F(gatekeeper_test, what_follows_a_greeting_at_once_is_not_lost) {
  const auto here = open(coordinator);
  const raw_peer other{here->address()};
  const auto hello = make_hello(token, worker, coordinator);
  std::vector<char> bytes(sizeof hello);
  std::memcpy(bytes.data(), &hello, sizeof hello);
  bytes.insert(bytes.end(), {'a', 'b'});
  ASSERT_TRUE(other.send(bytes));
  EXPECT_THAT(wait_for_one().rest, testing::ElementsAre('a', 'b'));
}

TEST_F(gatekeeper_test, another_run_another_start_and_nobody_are_told_apart) {
  const auto here = open(coordinator);
  const auto there = open(worker);
  const auto newer = dial(*there, here->address(), {coordinator.role, {4}});
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, error_code::role_lost);
  EXPECT_THAT(newer.error().message, testing::HasSubstr("coordinator 0 (incarnation 4)"));
  const auto nobody = dial(*there, "dlrun-nobody", coordinator);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, error_code::system);
  token.bytes[0] = 9;
  const auto stranger = open(worker);
  const auto other_run = dial(*stranger, here->address(), coordinator);
  ASSERT_FALSE(other_run);
  EXPECT_EQ(other_run.error().code, error_code::fenced);
  EXPECT_EQ(count(), 0U);
}

TEST_F(gatekeeper_test, another_version_is_told_so) {
  const auto here = open(coordinator);
  const raw_peer other{here->address()};
  auto hello = make_hello(token, worker, coordinator);
  hello.version = link_version + 1;
  ASSERT_TRUE(other.send_value(hello));
  const auto said = other.read_welcome();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->status, greeting_status::other_version);
  const auto shown = check_welcome(*said, coordinator);
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().code, error_code::bad_usage);
}

TEST_F(gatekeeper_test, who_makes_no_sense_gets_no_answer) {
  const auto here = open(coordinator);
  auto no_magic = make_hello(token, worker, coordinator);
  no_magic.magic = 1;
  auto no_role = make_hello(token, worker, coordinator);
  no_role.from.kind = 77;
  for (const auto& hello : {no_magic, no_role}) {
    const raw_peer other{here->address()};
    ASSERT_TRUE(other.send_value(hello));
    EXPECT_FALSE(other.read_welcome());
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(gatekeeper_test, who_is_silent_or_slow_is_dropped_and_keeps_nobody_out) {
  const auto here = open(coordinator, {.greeting_deadline = 50ms, .strangers_max = 4});
  std::vector<raw_peer> silent;
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(here->address());
    ASSERT_TRUE(silent.back().send(std::string(static_cast<std::size_t>(i), 'x')));
  }
  const auto there = open(worker);
  const auto dialled = dial(*there, here->address(), coordinator);
  EXPECT_TRUE(dialled) << dialled.error().message;
  for (const auto& one : silent) one.wait_for_the_end();
}

TEST_F(gatekeeper_test, a_process_that_hangs_is_given_up_at_the_deadline_and_keeps_no_other_waiting) {
  const base::unique_fd listening{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&at), sizeof(sa_family_t)), 0); // autobind
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  socklen_t length = sizeof at;
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  const std::string hung{at.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1};

  const auto here = open(coordinator);
  const auto there = open(worker, {.greeting_deadline = 300ms});
  std::promise<result<open_socket>> given_up;
  there->dial(hung, coordinator, [&](result<open_socket> how) { given_up.set_value(std::move(how)); });
  EXPECT_TRUE(dial(*there, here->address(), coordinator));
  const auto how = given_up.get_future().get();
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::timed_out);
}

TEST_F(gatekeeper_test, the_end_ends_what_is_being_dialled) {
  auto there = open(worker);
  const base::unique_fd listening{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&at), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  socklen_t length = sizeof at;
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  std::promise<result<open_socket>> ended;
  there->dial({at.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1}, coordinator,
              [&](result<open_socket> how) { ended.set_value(std::move(how)); });
  there.reset();
  const auto how = ended.get_future().get();
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::interrupted);
}

} // namespace
} // namespace dlrun::link
