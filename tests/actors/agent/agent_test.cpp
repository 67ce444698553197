// The agent's shell: roles are a script, the coordinator is a mailbox that the test looks into, and
// time passes when the test says so.
#include "actors/agent/agent.hpp"

#include "actors/common/clock.hpp"
#include "actors/protocol/type_ids.hpp"
#include "tests/actors/mailbox.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/actors/virtual_actors.hpp"
#include "tests/data/files.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace dlrun::agent {
namespace {

using test::take;
using namespace std::chrono_literals;
using protocol::role_kind;
using protocol::role_name;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr role_name coordinator_role{role_kind::coordinator, 0};
constexpr role_name shard{role_kind::ps_shard, 0};
constexpr role_name worker{role_kind::worker, 0};

/// Starts nothing: keeps what is ordered, and says what the test has it say.
class scripted_launcher : public role_launcher {
public:
  struct stop_order {
    role_name role;
    protocol::stop_how how = protocol::stop_how::end;
    bool operator==(const stop_order&) const = default;
  };

  void start(const launch_order& order, const launch_events& events) override {
    starts.push_back(order);
    all_.push_back(order);
    events_ = events;
  }
  std::vector<seen_work> look() override { return {}; }
  void stop(const role_name& role, const protocol::fence&, protocol::stop_how how) override {
    stops.push_back({role, how});
  }

  const launch_order& newest(const role_name& role) const {
    const auto found =
        std::find_if(all_.rbegin(), all_.rend(), [&](const launch_order& one) { return one.role == role; });
    DLRUN_CHECK(found != all_.rend(), "{} was started", protocol::to_string(role));
    return *found;
  }
  void started(const role_name& role, std::int32_t pid) { events_.started(role, newest(role).self, pid); }
  void start_failed(const role_name& role, const error& why) {
    events_.start_failed(role, newest(role).self, why);
  }
  void exited(const role_name& role, const role_end& how) { events_.exited(role, newest(role).self, how); }

  std::vector<launch_order> starts; ///< since a test last cleared them
  std::vector<stop_order> stops;

private:
  std::vector<launch_order> all_;
  launch_events events_;
};

class agent_test : public testing::Test, protected test::virtual_time {
protected:
  agent_test() {
    agent = spawn_agent();
    observer->monitor(agent);
    tell(protocol::tick{});
  }
  protocol::agent_actor spawn_agent() {
    return system.spawn(agent_state::start, agent_arguments{.job = job,
                                                            .coordinator = {{1}, 77},
                                                            .launcher = launcher,
                                                            .board = board,
                                                            .log = std::make_shared<spdlog::logger>("test"),
                                                            .now = [this] { return now; }});
  }
  template <class... Messages>
  void tell(Messages... messages) {
    caf::anon_send(agent, std::move(messages)...);
    dispatch();
  }

  // what roles do
  result<protocol::join_reply> ask_to_join(const protocol::agent_actor& whom, const protocol::fence& self,
                                           const std::string& control) {
    const protocol::join message{coordinator_role, self, 100, {control, 0, {}}, {}};
    const auto handle =
        caf::actor_cast<protocol::coordinator_actor>(caf::actor_cast<caf::strong_actor_ptr>(coordinator));
    auto question = coordinator->request(whom, 1s, message, handle);
    dispatch();
    result<protocol::join_reply> answer;
    question.receive([&](const protocol::join_reply& reply) { answer = reply; },
                     [&](const caf::error& why) { answer = fail(error_code::role_lost, to_string(why)); });
    return answer;
  }
  protocol::join_reply join(const protocol::fence& self, const std::string& control = "somewhere") {
    const auto answer = ask_to_join(agent, self, control);
    if (!answer) ADD_FAILURE() << answer.error().message;
    return answer.value_or(protocol::join_reply{});
  }
  void grant(const role_name& role, std::uint64_t first, std::uint64_t last) {
    protocol::grant message{role, {}, job->process};
    for (auto i = first; i <= last; ++i) message.fences.push_back({{i}, 1000 + i});
    tell(message);
  }
  void beat(const role_name& role) {
    tell(protocol::heartbeat{.role = role, .self = launcher->newest(role).self, .state = "training"});
  }
  void started(const role_name& role, std::int32_t pid = 100) {
    launcher->started(role, pid);
    dispatch();
  }
  void exited(const role_name& role, const role_end& how) {
    launcher->exited(role, how);
    dispatch();
  }
  /// Everything runs, and has given a sign of life.
  void bring_all_up() {
    started(coordinator_role);
    ASSERT_TRUE(join({{1}, 77}).accepted);
    grant(coordinator_role, 2, 4);
    for (const auto& role : {shard, worker}) {
      grant(role, 1, 3);
      started(role);
      beat(role);
    }
    launcher->starts.clear();
    take<protocol::role_started>(coordinator);
  }
  static std::vector<role_name> roles_of(const std::vector<launch_order>& starts) {
    std::vector<role_name> roles;
    for (const auto& one : starts) roles.push_back(one.role);
    return roles;
  }
  std::string events() const {
    std::ostringstream text;
    text << std::ifstream(folder.path() / "events.jsonl").rdbuf();
    return text.str();
  }
  std::optional<protocol::job_ended> ended() {
    std::vector<protocol::job_event> told;
    return board->wait(0ms, told);
  }

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  std::shared_ptr<scripted_launcher> launcher = std::make_shared<scripted_launcher>();
  std::shared_ptr<run_board> board = std::make_shared<run_board>();
  caf::scoped_actor observer{system};
  caf::scoped_actor coordinator{system};
  protocol::agent_actor agent;

  void TearDown() override {
    caf::anon_send_exit(agent, caf::exit_reason::kill);
    agent = nullptr;
    dispatch();
  }
};

TEST_F(agent_test, an_event_has_the_time_of_the_agent_that_heard_of_it) {
  tell(protocol::job_event{
      .event = "disk-full", .role = shard, .incarnation = {1}, .text = "full", .at_us = 5});
  std::vector<protocol::job_event> told;
  board->wait(0ms, told);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().event, "disk-full");
  EXPECT_EQ(told.back().at_us, common::to_us(now));
  EXPECT_THAT(events(), HasSubstr(fmt::format("\"monotonic_us\":{}", common::to_us(now))));
}

TEST_F(agent_test, roles_are_started_in_order_with_the_fences_that_were_granted) {
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(coordinator_role));
  EXPECT_EQ(launcher->starts[0].self, (protocol::fence{{1}, 77}));
  EXPECT_FALSE(launcher->starts[0].coordinator) << "it needs nobody's address";
  started(coordinator_role);
  EXPECT_TRUE(join({{1}, 77}, "elsewhere").accepted);
  EXPECT_THAT(launcher->starts, SizeIs(1)) << "no fence was granted";
  grant(worker, 1, 2);
  EXPECT_THAT(launcher->starts, SizeIs(1)) << "the PS shard comes first";
  grant(shard, 1, 2);
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(coordinator_role, shard));
  EXPECT_EQ(launcher->starts[1].self, (protocol::fence{{1}, 1001}));
  ASSERT_TRUE(launcher->starts[1].coordinator);
  EXPECT_EQ(launcher->starts[1].coordinator->at.control, "elsewhere");
  started(shard, 200);
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(coordinator_role, shard, worker));
  const auto told = take<protocol::role_started>(coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].role, shard);
  EXPECT_EQ(told[0].pid, 200);
}

TEST_F(agent_test, another_coordinator_than_the_one_it_started_is_refused) {
  started(coordinator_role);
  const auto reply = join({{1}, 78});
  EXPECT_FALSE(reply.accepted);
  EXPECT_EQ(reply.reason, "incarnation 1 is not the coordinator's");
}

TEST_F(agent_test, one_that_comes_before_the_job_has_begun_is_not_refused_but_has_to_come_again) {
  auto waiting = spawn_agent();
  const auto answer = ask_to_join(waiting, {{1}, 78}, "somewhere");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("has not begun"));
  caf::anon_send_exit(waiting, caf::exit_reason::kill);
  waiting = nullptr;
  dispatch();
}

TEST_F(agent_test, fences_of_another_root_are_not_used) {
  started(coordinator_role);
  join({{1}, 77});
  tell(protocol::grant{shard, {{{1}, 1001}}, job->process + 1});
  EXPECT_THAT(launcher->starts, SizeIs(1));
}

TEST_F(agent_test, an_end_by_its_own_doing_is_told_with_its_cause_and_made_good_at_once) {
  bring_all_up();
  now += 40ms;
  exited(worker, {.cause = "killed by signal 11 (SEGV)", .slot = protocol::slot_progress{{{7}, {1}}}});
  const auto told = take<protocol::role_exited>(coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].role, worker);
  EXPECT_EQ(told[0].cause, "killed by signal 11 (SEGV), in slot 1 of step 7");
  EXPECT_EQ(told[0].detected_us, 40'000U);
  EXPECT_TRUE(told[0].has_progress);
  EXPECT_TRUE(told[0].replaced);
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(worker));
  EXPECT_EQ(launcher->starts[0].self, (protocol::fence{{2}, 1002}));
  pass(100ms); // the file is flushed with a tick
  EXPECT_THAT(events(), HasSubstr("killed by signal 11 (SEGV), in slot 1 of step 7"));
  EXPECT_THAT(events(), HasSubstr(R"("event":"role-restarted")"));
}

TEST_F(agent_test, whoever_ends_without_a_sign_of_life_is_started_again_after_a_pause) {
  bring_all_up();
  exited(worker, {.cause = "exited with code 1"});
  started(worker);
  launcher->starts.clear();
  exited(worker, {.cause = "exited with code 1"}); // it was not heard
  EXPECT_THAT(launcher->starts, IsEmpty());
  pass(100ms);
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(worker));
  EXPECT_EQ(launcher->starts[0].self.incarnation, incarnation{3});
}

TEST_F(agent_test, a_start_that_can_never_succeed_ends_the_job) {
  bring_all_up();
  exited(worker, {.cause = "exited with code 1"});
  launcher->start_failed(worker, {error_code::bad_usage, "no such program"});
  dispatch();
  const auto told = take<protocol::stop_job>(coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].outcome, protocol::job_outcome::failed);
  EXPECT_EQ(told[0].reason, "worker 0 cannot be started: no such program");
}

TEST_F(agent_test, without_its_coordinator_it_lives_on_and_tells_the_next_one_what_happened) {
  bring_all_up();
  exited(coordinator_role, {.cause = "killed by signal 9 (KILL)"});
  exited(worker, {.cause = "killed by signal 15 (TERM)"});
  ASSERT_THAT(roles_of(launcher->starts), ElementsAre(coordinator_role, worker)) << "with spare fences";
  EXPECT_THAT(launcher->stops, IsEmpty());
  started(worker, 300);
  EXPECT_THAT(take<protocol::role_exited>(coordinator), IsEmpty()) << "there is nobody to tell";
  take<protocol::role_started>(coordinator);
  started(coordinator_role);
  EXPECT_TRUE(join({{2}, 1002}).accepted);
  const auto exits = take<protocol::role_exited>(coordinator);
  ASSERT_THAT(exits, SizeIs(2));
  EXPECT_EQ(exits[0].role, coordinator_role);
  EXPECT_EQ(exits[1].cause, "killed by signal 15 (TERM)");
  const auto running = take<protocol::role_started>(coordinator);
  ASSERT_THAT(running, SizeIs(2));
  EXPECT_EQ(running[0].role, shard);
  EXPECT_EQ(running[1].role, worker);
  EXPECT_EQ(running[1].pid, 300);
}

TEST_F(agent_test, a_heartbeat_is_answered_with_where_the_coordinator_is) {
  bring_all_up();
  auto question = observer->request(
      agent, 1s, protocol::heartbeat{.role = worker, .self = {{1}, 1001}, .state = "training"});
  dispatch();
  protocol::coordinator_location where;
  question.receive([&](const protocol::coordinator_location& answer) { where = answer; },
                   [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  EXPECT_EQ(where.incarnation, incarnation{1});
  EXPECT_EQ(where.at.control, "somewhere");
}

TEST_F(agent_test, a_stall_is_over_with_a_step_also_when_the_coordinator_that_told_of_it_died) {
  bring_all_up();
  const auto step = [&](std::uint64_t done) {
    tell(protocol::heartbeat{
        .role = shard, .self = launcher->newest(shard).self, .state = "training", .step = done});
    tell(protocol::tick{});
  };
  step(7);
  tell(protocol::stall{.version = {7}, .role = shard, .phase = protocol::stall_phase::logging});
  exited(coordinator_role, {.cause = "killed by signal 9 (SIGKILL)"});
  step(7);
  EXPECT_THAT(events(), testing::Not(HasSubstr("stall-over")));
  step(8);
  EXPECT_THAT(events(), HasSubstr("stall-over"));
}

TEST_F(agent_test, a_job_that_is_stopped_ends_with_the_report_and_then_role_by_role) {
  bring_all_up();
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  const auto told = take<protocol::stop_job>(coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "Ctrl-C");
  EXPECT_THAT(launcher->stops, IsEmpty()) << "nobody is stopped before the report is written";
  EXPECT_EQ(board->snapshot().status, "running");
  pass(100ms);
  EXPECT_EQ(board->snapshot().status, "stopping");
  tell(protocol::job_ended{
      .outcome = protocol::job_outcome::interrupted, .reason = "Ctrl-C", .coordinator = {1}});
  for (const auto& role : {worker, shard, coordinator_role}) {
    ASSERT_FALSE(launcher->stops.empty());
    EXPECT_EQ(launcher->stops.back(), (scripted_launcher::stop_order{role}));
    EXPECT_FALSE(ended());
    exited(role, {.cause = "ended"});
  }
  EXPECT_THAT(launcher->stops, SizeIs(3));
  EXPECT_THAT(launcher->starts, IsEmpty());
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended()->outcome, protocol::job_outcome::interrupted);
  EXPECT_EQ(board->snapshot().status, "interrupted");
  EXPECT_THAT(take<caf::down_msg>(observer), SizeIs(1)) << "its work is done";
}

TEST_F(agent_test, a_number_of_workers_is_acknowledged_when_the_coordinator_has_journaled_it) {
  bring_all_up();
  auto question = observer->request(agent, 1s, protocol::scale_request{2});
  dispatch();
  const auto told = take<protocol::scale_job>(coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].workers, 2U);
  EXPECT_THAT(launcher->starts, IsEmpty()) << "the journal does not have it";
  tell(protocol::workers_wanted{job->process, told[0].request, 2});
  protocol::scale_reply answer;
  question.receive([&](const protocol::scale_reply& reply) { answer = reply; },
                   [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  EXPECT_TRUE(answer.accepted) << answer.reason;
  const role_name second{protocol::role_kind::worker, 1};
  grant(second, 1, 3);
  EXPECT_THAT(roles_of(launcher->starts), ElementsAre(second));
  tell(protocol::workers_wanted{job->process, told[0].request + 1, 1});
  EXPECT_THAT(launcher->stops, ElementsAre(scripted_launcher::stop_order{second, protocol::stop_how::leave}));
  EXPECT_THAT(events(), HasSubstr("\"event\":\"workers-scaled\""));
  pass(100ms);
  EXPECT_EQ(board->snapshot().workers.wanted, 1U);
}

TEST_F(agent_test, a_number_of_workers_that_no_coordinator_journals_before_the_job_ends_is_refused) {
  bring_all_up();
  auto question = observer->request(agent, 1s, protocol::scale_request{2});
  dispatch();
  tell(protocol::job_ended{.outcome = protocol::job_outcome::completed, .reason = "", .coordinator = {1}});
  for (const auto& role : {worker, shard, coordinator_role}) exited(role, {.cause = "ended"});
  protocol::scale_reply answer{true, ""};
  question.receive([&](const protocol::scale_reply& reply) { answer = reply; },
                   [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  EXPECT_FALSE(answer.accepted);
  EXPECT_THAT(answer.reason, HasSubstr("ended before"));
}

TEST_F(agent_test, a_number_of_workers_that_cannot_be_is_refused) {
  bring_all_up();
  auto question = observer->request(agent, 1s, protocol::scale_request{1000});
  dispatch();
  protocol::scale_reply answer{true, ""};
  question.receive([&](const protocol::scale_reply& reply) { answer = reply; },
                   [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  EXPECT_FALSE(answer.accepted);
  EXPECT_THAT(answer.reason, HasSubstr("cluster.workers_max"));
}

TEST_F(agent_test, whoever_does_not_end_when_asked_is_killed) {
  bring_all_up();
  tell(protocol::job_ended{.outcome = protocol::job_outcome::completed, .reason = "", .coordinator = {1}});
  pass(1900ms);
  EXPECT_THAT(launcher->stops, ElementsAre(scripted_launcher::stop_order{worker}));
  pass(100ms);
  EXPECT_THAT(launcher->stops, ElementsAre(scripted_launcher::stop_order{worker},
                                           scripted_launcher::stop_order{worker, protocol::stop_how::kill}));
}

} // namespace
} // namespace dlrun::agent
