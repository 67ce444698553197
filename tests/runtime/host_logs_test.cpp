// What the root answers to `dlrun logs` of a host that takes its time, in virtual time.
#include "runtime/host_logs.hpp"

#include "runtime/answer_deadlines.hpp"
#include "tests/actors/agent/collector_fixture.hpp"
#include "tests/actors/agent/hosts_by_hand.hpp"
#include "tests/actors/quiet_agent.hpp"
#include "tests/actors/virtual_actors.hpp"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <sys/socket.h>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using protocol::host_agent_actor;
using testing::StartsWith;
using log_promise = caf::typed_response_promise<protocol::log_listing>;

/// Answers once it is asked for a store.
host_agent_actor::behavior_type play_busy_host(host_agent_actor::pointer self,
                                               std::optional<log_promise>* asked) {
  return agent::asked_host(
      [asked](const protocol::store_listing_wanted&) {
        (*asked)->deliver(protocol::log_listing{});
        return protocol::store_listing{};
      },
      [](const protocol::store_part_wanted&) { return protocol::store_part{}; },
      [self, asked](const protocol::log_listing_wanted&) -> caf::result<protocol::log_listing> {
        *asked = self->make_response_promise<protocol::log_listing>();
        return **asked;
      },
      [](const protocol::log_part_wanted&) { return protocol::log_part{}; });
}

class host_logs_test : public testing::Test, protected test::virtual_time {
protected:
  host_logs_test() {
    hosts->agent_is([](const auto& task) { task(); }, [](const protocol::job_event&) {});
    hosts->begin();
    EXPECT_TRUE(hosts->on_joined({.host = "beta", .boot = 7, .cpus = 8}, beta).accepted);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    asker.reset(ends[0]);
    logs.answer("logs beta", agent::control_reply{base::unique_fd{ends[1]}});
    dispatch();
    EXPECT_TRUE(asked) << "beta is asked";
  }
  ~host_logs_test() override {
    asked.reset();
    caf::anon_send_exit(beta, caf::exit_reason::kill);
    caf::anon_send_exit(agent, caf::exit_reason::kill);
    dispatch();
  }

  /// What has come, if anything has.
  std::optional<std::string> answer() const {
    std::string text(1000, '\0');
    const auto size = ::recv(asker.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (size < 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(size));
    return text;
  }

  std::optional<log_promise> asked;
  base::unique_fd asker;
  host_agent_actor beta = system.spawn(play_busy_host, &asked);
  protocol::agent_actor agent = system.spawn([](protocol::agent_actor::pointer) {
    return test::quiet_agent(
        [](const protocol::heartbeat&) { return protocol::coordinator_location{}; },
        [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; });
  });
  std::shared_ptr<agent::routed_launcher> hosts =
      std::make_shared<agent::routed_launcher>(agent::routed_launcher_options{
          .hosts = {.root = "alpha", .root_cpus = 1, .hosts = {{"beta", 8}}},
          .here = {},
          .starter = std::make_shared<agent::order_of_hosts>(),
          .issue = {},
          .beats = std::make_shared<agent::beats_by_hand>("10.0.0.1:4000"),
          .now = [this] { return now; },
          .folder_of = [](const std::string&) { return std::string{"/there/run"}; }});
  host_logs logs{system, agent, hosts};
};

TEST_F(host_logs_test, a_host_that_is_busy_for_seconds_is_waited_for) {
  pass(5s);
  EXPECT_FALSE(answer());
  caf::anon_send(beta, protocol::store_listing_wanted{});
  dispatch();
  EXPECT_EQ(answer().value_or(""), R"(+{"logs":[]})");
}

TEST_F(host_logs_test, who_asks_hears_in_time_of_a_host_that_never_answers) {
  pass(root_answer_deadline - 1s);
  EXPECT_THAT(answer().value_or(""), StartsWith("-it does not answer"));
}

} // namespace
} // namespace dlrun::runtime
