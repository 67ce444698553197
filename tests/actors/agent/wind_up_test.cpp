#include "actors/agent/wind_up.hpp"

#include "actors/common/actor_config.hpp"
#include "tests/actors/quiet_agent.hpp"
#include "tests/data/files.hpp"

#include <atomic>
#include <condition_variable>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <utility>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 30s; // of a test that fails

/// A job on hosts that have nothing to give, so that all happens at once but the delivery.
class wind_up_test : public testing::Test {
protected:
  wind_up_test() {
    parts.run_dir = folder.path();
    parts.lacking = [this] { return lacking; };
    parts.tell = [](const protocol::job_event&) {};
    parts.deliver = [this](const std::stop_token&) {
      delivered = true;
      return why_not;
    };
    parts.done = [this](const protocol::job_ended& how, bool may_go) { done.set_value({how, may_go}); };
  }
  ~wind_up_test() override { end_agent(); }

  void begin(protocol::job_outcome outcome) {
    agent = system.spawn([this](protocol::agent_actor::pointer self) {
      tested.emplace(self, parts);
      self->attach_functor([this] { tested.reset(); }); // as what the actor owns
      return test::quiet_agent(
          [](const protocol::heartbeat&) { return protocol::coordinator_location{}; },
          [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; });
    });
    common::post(agent, [this, outcome] { tested->begin({outcome, ""}); });
  }
  void end_agent() {
    if (agent) caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
    agent = nullptr;
    system.await_all_actors_done();
  }
  /// How the job has ended, and whether its hosts may go.
  std::pair<protocol::job_ended, bool> ended() {
    auto said = done.get_future();
    if (said.wait_for(patience) != std::future_status::ready) ADD_FAILURE() << "it never ends";
    return said.wait_for(0s) == std::future_status::ready ? said.get()
                                                          : std::pair<protocol::job_ended, bool>{};
  }

  test::temporary_folder folder;
  wind_up_parts parts;
  std::optional<std::string> lacking{""};
  std::string why_not{};
  std::atomic<bool> delivered = false;
  std::promise<std::pair<protocol::job_ended, bool>> done;
  common::actor_config config{1};
  caf::actor_system system{config};
  std::optional<wind_up> tested;
  protocol::agent_actor agent;
};

TEST_F(wind_up_test, a_model_that_is_delivered_lets_the_hosts_go) {
  begin(protocol::job_outcome::completed);
  const auto [how, may_go] = ended();
  EXPECT_TRUE(delivered);
  EXPECT_EQ(how.outcome, protocol::job_outcome::completed);
  EXPECT_TRUE(may_go);
}

TEST_F(wind_up_test, a_model_that_cannot_be_delivered_keeps_the_hosts_waiting_and_says_why) {
  why_not = "the claim is full";
  begin(protocol::job_outcome::completed);
  const auto [how, may_go] = ended();
  EXPECT_EQ(how.outcome, protocol::job_outcome::failed);
  EXPECT_EQ(how.reason, "the claim is full");
  EXPECT_FALSE(may_go);
}

TEST_F(wind_up_test, a_model_of_which_something_is_lacking_is_not_delivered) {
  lacking = "PS shard 1";
  begin(protocol::job_outcome::completed);
  const auto [how, may_go] = ended();
  EXPECT_FALSE(delivered);
  EXPECT_EQ(how.outcome, protocol::job_outcome::failed);
  EXPECT_FALSE(may_go);
}

TEST_F(wind_up_test, a_job_that_is_not_complete_has_no_model_to_deliver) {
  begin(protocol::job_outcome::interrupted);
  const auto [how, may_go] = ended();
  EXPECT_FALSE(delivered);
  EXPECT_EQ(how.outcome, protocol::job_outcome::interrupted);
  EXPECT_TRUE(may_go);
}

TEST_F(wind_up_test, a_delivery_in_hand_is_asked_to_stop_when_the_agent_ends) {
  std::promise<void> begun;
  parts.deliver = [&begun](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any asked;
    std::unique_lock lock{mutex};
    begun.set_value();
    asked.wait(lock, stop, [] { return false; });
    return std::string{"stopped"};
  };
  begin(protocol::job_outcome::completed);
  ASSERT_EQ(begun.get_future().wait_for(patience), std::future_status::ready);
  end_agent(); // would wait for ever
  EXPECT_EQ(done.get_future().wait_for(0s), std::future_status::timeout) << "nobody is there to be told";
}

} // namespace
} // namespace dlrun::agent
