// What a root answers to other commands while something else waits, and when its agent has ended.
#include "runtime/run_control.hpp"

#include "actors/agent/control_socket.hpp"
#include "actors/common/actor_config.hpp"
#include "job/exit_code.hpp"
#include "tests/actors/quiet_agent.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using protocol::agent_actor;
using scale_promise = caf::typed_response_promise<protocol::scale_reply>;

constexpr auto answer_patience = 60s;

/// Says who waits for a number of workers, and answers nobody.
agent_actor::behavior_type play_waiting_agent(agent_actor::pointer self, std::promise<scale_promise>* asked) {
  return test::quiet_agent(
      [](const protocol::heartbeat&) { return protocol::coordinator_location{}; },
      [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; },
      [self, asked](const protocol::scale_request&) -> caf::result<protocol::scale_reply> {
        auto promise = self->make_response_promise<protocol::scale_reply>();
        asked->set_value(promise);
        return promise;
      });
}

struct run_control_test : testing::Test {
  run_control_test() {
    const run_control control{
        {.system = system, .spec = test::parse(test::minimal_spec).value(), .board = board, .agent = agent}};
    auto made = agent::control_server::start(
        folder.path(), [control](const auto& request, const auto& reply) { control.answer(request, reply); });
    EXPECT_TRUE(made) << made.error().message;
    if (made) server = std::move(*made);
  }
  ~run_control_test() override { caf::anon_send_exit(agent, caf::exit_reason::user_shutdown); }

  nlohmann::json ask(const std::string& request) const {
    const auto answer = agent::exchange_with_root(folder.path(), request, answer_patience);
    return answer ? nlohmann::json::parse(*answer) : nlohmann::json{{"error", answer.error().message}};
  }

  common::actor_config config{2};
  caf::actor_system system{config};
  test::temporary_folder folder;
  std::promise<scale_promise> asked;
  std::shared_ptr<agent::run_board> board = std::make_shared<agent::run_board>();
  agent_actor agent = system.spawn(play_waiting_agent, &asked);
  std::unique_ptr<agent::control_server> server;
};

TEST_F(run_control_test, others_are_answered_while_a_number_of_workers_waits_for_the_journal) {
  auto scaling = std::async(std::launch::async, [&] { return ask("scale 3"); });
  auto waiting = asked.get_future().get();
  EXPECT_TRUE(ask("status").contains("workers"));
  EXPECT_EQ(scaling.wait_for(0s), std::future_status::timeout);
  waiting.deliver(protocol::scale_reply{true, {}});
  EXPECT_EQ(scaling.get(), (nlohmann::json{{"workers", 3}}));
}

TEST_F(run_control_test, a_number_that_nobody_journals_any_more_is_refused) {
  caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
  caf::scoped_actor self{system};
  self->wait_for(agent);
  const auto answer = ask("scale 3");
  EXPECT_EQ(answer.value("error", ""), "the job is ending");
  EXPECT_EQ(answer.value("exit_code", 0), static_cast<int>(job::exit_code::bad_input));
}

} // namespace
} // namespace dlrun::runtime
