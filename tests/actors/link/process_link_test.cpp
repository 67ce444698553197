// Two processes' worth of actors, each behind a link of its own.
#include "actors/link/process_link.hpp"

#include "actors/common/actor_config.hpp"
#include "tests/actors/link/message_places.hpp"
#include "tests/actors/link/raw_peer.hpp"

#include <caf/all.hpp>
#include <future>
#include <gmock/gmock.h>
#include <mutex>

namespace dlrun::link {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;
using test::raw_peer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const peer_id agent_peer{{role_kind::agent, 0}, {1}};
const peer_id coordinator_peer{{role_kind::coordinator, 0}, {1}};
const peer_id worker_peer{{role_kind::worker, 0}, {1}};
constexpr auto patience = 60s;

/// What the played agent was told, and how it answers.
struct agent_script {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard; // guarded by mutex, as is the next
  protocol::coordinator_actor joined;
  std::vector<caf::response_promise> kept_waiting; // of the actor

  void hear(std::string what) {
    const std::scoped_lock lock{mutex};
    heard.push_back(std::move(what));
    changed.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock{mutex};
    EXPECT_TRUE(changed.wait_for(lock, patience, [&] { return heard.size() >= count; }));
    return heard;
  }
};

protocol::agent_actor::behavior_type play_agent(protocol::agent_actor::pointer self,
                                                const std::shared_ptr<agent_script>& script) {
  return {[script](const protocol::join& join, const protocol::coordinator_actor& who) {
            {
              const std::scoped_lock lock{script->mutex};
              script->joined = who;
            }
            script->hear(fmt::format("join {}", join.pid));
            return protocol::join_reply{true, "welcome"};
          },
          [script](const protocol::grant&) { script->hear("grant"); },
          [](const protocol::start_over&) {},
          [](const protocol::workers_wanted&) {},
          [](const protocol::scale_request&) { return protocol::scale_reply{}; },
          [](const protocol::journal_part_wanted&) { return protocol::journal_part{}; },
          [script](const protocol::job_event& event) { script->hear(event.text); },
          [](const protocol::stall&) {},
          [self](const protocol::job_ended&) { self->quit(); },
          [self, script](const protocol::heartbeat& beat) -> caf::result<protocol::coordinator_location> {
            if (beat.state == "hang") {
              script->kept_waiting.push_back(self->make_response_promise());
              script->hear("hang");
              return script->kept_waiting.back();
            }
            if (beat.state == "fail") return caf::make_error(caf::sec::runtime_error, "cannot say");
            return protocol::coordinator_location{{beat.step}, {"there", 5, ""}};
          },
          [script](const protocol::stop_job& stop) { script->hear(stop.reason); },
          [](const protocol::host_joined&, const protocol::host_agent_actor&) {
            return protocol::join_reply{false, "one host"};
          },
          [](const protocol::start_report&) {},
          [](const protocol::work_report&) {},
          [script](const protocol::credentials_wanted& wanted) {
            script->hear(protocol::to_string(wanted.role));
            return protocol::role_credentials{"certificate", "key", "authority", 60};
          },
          [](const protocol::report_part&) { return protocol::report_taken{}; },
          [script](const protocol::tick&) { script->hear("tick"); },
          [](const protocol::continuation&) {}};
}

/// A coordinator that writes down what the agent tells it.
protocol::coordinator_actor::behavior_type play_coordinator(protocol::coordinator_actor::pointer,
                                                            const std::shared_ptr<agent_script>& script) {
  return {[](const protocol::join&, const protocol::worker_actor&)
              -> caf::result<protocol::join_reply, protocol::data_dispatcher_actor> {
            return caf::make_error(caf::sec::runtime_error, "full");
          },
          [](const protocol::join&, const protocol::ps_shard_actor&)
              -> caf::result<protocol::join_reply, protocol::data_dispatcher_actor> {
            return {protocol::join_reply{true, {}}, protocol::data_dispatcher_actor{}};
          },
          [script](const protocol::role_started& started) {
            script->hear(fmt::format("started {}", started.pid));
          },
          [](const protocol::role_exited&) {},
          [script](const protocol::stop_job& stop) { script->hear(stop.reason); },
          [](const protocol::scale_job&) {},
          [](const protocol::training_progress&) {},
          [](const protocol::training_finished&) {},
          [](const protocol::training_closed&) {},
          [](const protocol::evaluated&) {},
          [](const protocol::slots_redispatched&) {},
          [](const protocol::worker_contributed&) {},
          [](const protocol::ps_shard_resumed&) {},
          [](const protocol::timeline_started&) {},
          [](const protocol::divergence&) {},
          [](const protocol::stall&) {},
          [](const protocol::journal_part_wanted&) { return protocol::journal_part{}; },
          [](const protocol::tick&) {},
          [](const protocol::continuation&) {}};
}

/// Ends an actor, which its system waits for, however the test ends.
class ended_with_scope {
public:
  explicit ended_with_scope(caf::actor who)
      : who_{std::move(who)} {}
  template <class Handle>
  explicit ended_with_scope(const Handle& who)
      : ended_with_scope{caf::actor_cast<caf::actor>(who)} {}
  ~ended_with_scope() { caf::anon_send_exit(who_, caf::exit_reason::user_shutdown); }
  ended_with_scope(const ended_with_scope&) = delete;
  ended_with_scope& operator=(const ended_with_scope&) = delete;

private:
  caf::actor who_;
};

/// One process.
class side {
public:
  explicit side(const peer_id& self)
      : link_{process_link::create(system_, {.token = {{7}},
                                             .self = self,
                                             .warn =
                                                 [this](const auto& text) {
                                                   const std::scoped_lock lock{mutex_};
                                                   warnings_.push_back(text);
                                                 }})
                  .value()} {}

  caf::actor_system& system() { return system_; }
  process_link& link() { return *link_; }
  void end_link() { link_.reset(); }

  template <class Handle>
  result<Handle> connect(const std::string& address, const peer_id& wanted) {
    auto found = std::make_shared<std::promise<result<Handle>>>();
    link_->connect<Handle>(address, wanted, [found](const result<Handle>& who) { found->set_value(who); });
    return found->get_future().get();
  }

  std::vector<std::string> warnings() {
    const std::scoped_lock lock{mutex_};
    return warnings_;
  }

private:
  common::actor_config config_{2};
  caf::actor_system system_{config_};
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<process_link> link_;
};

class process_link_test : public testing::Test {
protected:
  process_link_test() { root.link().publish(agent); }
  ~process_link_test() override { caf::anon_send_exit(agent, caf::exit_reason::user_shutdown); }

  protocol::agent_actor reach(side& from) {
    auto found = from.connect<protocol::agent_actor>(root.link().address(), agent_peer);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(protocol::agent_actor{});
  }

  /// The step that a heartbeat comes back with, or the reason that it does not.
  static std::string ask(const caf::scoped_actor& self, const protocol::agent_actor& whom,
                         const std::string& state = "training",
                         std::chrono::milliseconds deadline = patience) {
    std::string said;
    self->request(whom, deadline,
                  protocol::heartbeat{.role = worker_peer.role, .self = {}, .state = state, .step = 41})
        .receive(
            [&](const protocol::coordinator_location& where) { said = fmt::format("{}", where.incarnation); },
            [&](const caf::error& why) { said = to_string(why); });
    return said;
  }

  std::shared_ptr<agent_script> script = std::make_shared<agent_script>();
  side root{agent_peer};
  side other{worker_peer};
  protocol::agent_actor agent = root.system().spawn(play_agent, script);
};

TEST_F(process_link_test, a_request_is_answered_and_a_message_arrives) {
  const auto there = reach(other);
  const caf::scoped_actor self{other.system()};
  EXPECT_EQ(ask(self, there), "41");
  EXPECT_THAT(ask(self, there, "fail"), HasSubstr("cannot say"));
}

TEST_F(process_link_test, messages_keep_their_order) {
  side coordinator{coordinator_peer};
  const auto there = reach(coordinator);
  const caf::scoped_actor self{coordinator.system()};
  constexpr std::size_t count = 5000;
  for (std::size_t i = 0; i < count; ++i)
    self->send(there,
               protocol::job_event{
                   .event = "x", .role = {}, .incarnation = {}, .text = std::to_string(i), .numbers = {}});
  const auto heard = script->wait_for(count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(heard[i], std::to_string(i));
}

TEST_F(process_link_test, a_certificate_is_asked_for_by_whom_it_is_for_alone) {
  const auto there = reach(other);
  const caf::scoped_actor self{other.system()};
  const auto ask_for = [&](const peer_id& whom) {
    std::string said;
    self->request(there, patience, protocol::credentials_wanted{whom.role, whom.incarnation})
        .receive([&](const protocol::role_credentials& given) { said = given.key; },
                 [&](const caf::error& why) { said = to_string(why); });
    return said;
  };
  EXPECT_EQ(ask_for(worker_peer), "key");
  EXPECT_NE(ask_for({worker_peer.role, {worker_peer.incarnation.value + 1}}), "key");
  EXPECT_THAT(root.warnings(), testing::Contains(HasSubstr("it speaks for")));
  EXPECT_EQ(script->wait_for(1).size(), 1U) << "the other one has not arrived";
}

TEST_F(process_link_test, a_handle_that_travels_can_be_spoken_to) {
  side coordinator{coordinator_peer};
  const auto told = std::make_shared<agent_script>();
  const protocol::coordinator_actor role = coordinator.system().spawn(play_coordinator, told);
  const ended_with_scope ends{role};
  coordinator.link().publish(role);
  const caf::scoped_actor self{coordinator.system()};
  self->request(
          reach(coordinator), patience,
          protocol::join{.role = coordinator_peer.role, .self = {}, .pid = 12, .at = {}, .fingerprint = {}},
          role)
      .receive([](const protocol::join_reply& reply) { EXPECT_TRUE(reply.accepted); },
               [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  EXPECT_THAT(script->wait_for(1), ElementsAre("join 12"));
  const caf::scoped_actor at_root{root.system()};
  at_root->send(script->joined, protocol::stop_job{.reason = "enough"});
  EXPECT_THAT(told->wait_for(1), ElementsAre("enough"));
}

TEST_F(process_link_test, who_monitors_a_role_is_told_when_it_ends) {
  const auto there = reach(other);
  caf::scoped_actor self{other.system()};
  self->monitor(there);
  caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
  self->receive([&](const caf::down_msg& down) { EXPECT_EQ(down.source, there->address()); });
  EXPECT_NE(ask(self, there), "41");
}

TEST_F(process_link_test, who_monitors_a_role_is_told_when_the_connection_ends) {
  const auto there = reach(other);
  caf::scoped_actor self{other.system()};
  self->monitor(there);
  root.end_link();
  self->receive([&](const caf::down_msg& down) { EXPECT_EQ(down.source, there->address()); });
}

TEST_F(process_link_test, who_leaves_a_peer_reaches_it_anew) {
  const auto there = reach(other);
  caf::scoped_actor self{other.system()};
  self->monitor(there);
  other.link().leave(coordinator_peer);
  EXPECT_EQ(ask(self, there), "41") << "nobody of that name was dialled";
  other.link().leave(agent_peer);
  self->receive([&](const caf::down_msg& down) { EXPECT_EQ(down.source, there->address()); });
  EXPECT_EQ(ask(self, reach(other)), "41");
}

TEST_F(process_link_test, requests_that_wait_fail_when_the_connection_ends) {
  const auto there = reach(other);
  const caf::scoped_actor self{other.system()};
  auto question = self->request(there, patience,
                                protocol::heartbeat{.role = worker_peer.role, .self = {}, .state = "hang"});
  EXPECT_THAT(script->wait_for(1), ElementsAre("hang"));
  root.end_link();
  question.receive([](const protocol::coordinator_location&) { ADD_FAILURE() << "nobody has answered"; },
                   [](const caf::error&) {});
}

TEST_F(process_link_test, a_request_that_nobody_answers_ends_at_its_deadline) {
  const auto there = reach(other);
  const caf::scoped_actor self{other.system()};
  EXPECT_THAT(ask(self, there, "hang", 50ms), HasSubstr("timeout"));
  EXPECT_EQ(ask(self, there), "41") << "the connection lives on";
}

TEST_F(process_link_test, who_says_something_to_a_role_that_is_ending_does_not_end_with_it) {
  const caf::scoped_actor self{other.system()};
  for (std::uint64_t round = 1; round <= 20; ++round) {
    // Of two processes no two are the same start of a role: `other` may not have seen yet that the
    // connection to the one before has ended.
    const peer_id name{agent_peer.role, {agent_peer.incarnation.value + round}};
    side passing{name};
    const protocol::agent_actor role = passing.system().spawn(play_agent, std::make_shared<agent_script>());
    const ended_with_scope ends_role{role};
    passing.link().publish(role);
    const auto there = other.connect<protocol::agent_actor>(passing.link().address(), name);
    ASSERT_TRUE(there) << there.error().message;
    // An ordinary actor: what it is not prepared for ends it.
    const auto talker = other.system().spawn([to = *there](caf::event_based_actor* talking) -> caf::behavior {
      return {[talking, to](int) { talking->send(to, protocol::stop_job{}); }, [](bool) { return true; }};
    });
    const ended_with_scope ends_talker{talker};
    passing.end_link();
    for (int i = 0; i < 100; ++i) self->send(talker, i);
    self->request(talker, patience, true)
        .receive([](bool) {},
                 [](const caf::error& why) { ADD_FAILURE() << "it has ended: " << to_string(why); });
  }
}

TEST_F(process_link_test, a_second_connect_finds_the_same_actor) {
  EXPECT_EQ(reach(other)->address(), reach(other)->address());
}

TEST_F(process_link_test, what_is_not_published_or_another_start_is_not_found) {
  side nobody{coordinator_peer};
  const auto found = other.connect<protocol::coordinator_actor>(nobody.link().address(), coordinator_peer);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, error_code::role_lost);
  EXPECT_FALSE(other.connect<protocol::agent_actor>(root.link().address(), {agent_peer.role, {2}}));
}

TEST_F(process_link_test, a_message_for_its_own_process_does_not_travel) {
  const auto there = reach(other);
  caf::scoped_actor self{other.system()};
  self->send(there, protocol::tick{});
  EXPECT_EQ(ask(self, there), "41");
  self->receive([](const caf::error& why) { ADD_FAILURE() << "it would end its sender: " << to_string(why); },
                caf::after(0s) >> [] {});
  EXPECT_THAT(script->wait_for(0), IsEmpty());
}

TEST_F(process_link_test, an_answer_may_hold_a_handle_that_is_null_or_be_an_error) {
  side coordinator{coordinator_peer};
  const protocol::coordinator_actor role =
      coordinator.system().spawn(play_coordinator, std::make_shared<agent_script>());
  const ended_with_scope ends{role};
  coordinator.link().publish(role);
  const auto there =
      other.connect<protocol::coordinator_actor>(coordinator.link().address(), coordinator_peer);
  ASSERT_TRUE(there);
  const caf::scoped_actor self{other.system()};
  const protocol::join join{.role = worker_peer.role, .self = {}, .pid = 1, .at = {}, .fingerprint = {}};
  self->request(*there, patience, join, protocol::worker_actor{})
      .receive([](const protocol::join_reply&, const protocol::data_dispatcher_actor&) { ADD_FAILURE(); },
               [](const caf::error& why) { EXPECT_THAT(to_string(why), HasSubstr("full")); });
  self->request(*there, patience, join, protocol::ps_shard_actor{})
      .receive(
          [](const protocol::join_reply& reply, const protocol::data_dispatcher_actor& who) {
            EXPECT_TRUE(reply.accepted);
            EXPECT_FALSE(who);
          },
          [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
}

// ---- peers that say what no correct peer says

constexpr auto grant_place = test::place_of<protocol::agent_actor, protocol::grant>();
constexpr auto heartbeat_place = test::place_of<protocol::agent_actor, protocol::heartbeat>();
constexpr auto tick_place = test::place_of<protocol::agent_actor, protocol::tick>();

class hostile_peer_test : public process_link_test {
protected:
  hostile_peer_test() { EXPECT_TRUE(peer.greet({{7}}, worker_peer, agent_peer)); }

  void expect_refused(const std::string& why) {
    peer.wait_for_the_end();
    ASSERT_THAT(root.warnings(), SizeIs(1));
    EXPECT_THAT(root.warnings()[0], HasSubstr("worker 0 (incarnation 1)"));
    EXPECT_THAT(root.warnings()[0], HasSubstr(why));
    EXPECT_THAT(script->wait_for(0), IsEmpty());
    const caf::scoped_actor self{other.system()};
    EXPECT_EQ(ask(self, reach(other)), "41") << "others are served";
  }

  raw_peer peer{root.link().address()};
};

TEST_F(process_link_test, a_role_of_the_last_kind_gets_in_and_one_of_a_kind_that_there_is_not_does_not) {
  const auto greets = [&](std::uint8_t kind) {
    const peer_id who{{static_cast<role_kind>(kind), 0}, {1}};
    return raw_peer{root.link().address()}.greet({{7}}, who, agent_peer);
  };
  constexpr auto last = static_cast<std::uint8_t>(protocol::last_role_kind);
  EXPECT_TRUE(greets(last));
  EXPECT_FALSE(greets(last + 1));
}

TEST_F(hostile_peer_test, a_message_that_another_role_sends_is_refused) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::message, .message = grant_place}));
  expect_refused("not for it to send");
}

TEST_F(hostile_peer_test, a_message_that_stays_within_its_process_is_refused) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::message, .message = tick_place}));
  expect_refused("not for it to send");
}

TEST_F(hostile_peer_test, a_message_that_there_is_not_is_refused) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::request, .message = 999, .call = 1}));
  expect_refused("not for it to send");
}

TEST_F(hostile_peer_test, a_payload_that_is_no_such_message_is_refused) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::request, .message = heartbeat_place, .call = 1},
                              std::string{"garbage"}));
  expect_refused("no such message");
}

TEST_F(hostile_peer_test, a_length_within_a_payload_takes_no_memory) {
  // role, fence, and the length of `state`: 2^63 bytes, as CAF writes a length
  std::string payload(1 + 4 + 8 + 8, '\0');
  payload += "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::request, .message = heartbeat_place, .call = 1}, payload));
  expect_refused("no such message");
}

TEST_F(hostile_peer_test, a_frame_of_4_GiB_is_refused_at_its_header) {
  ASSERT_TRUE(peer.send_value(frame_header{.bytes = 0xffff'ffff}));
  expect_refused("65536 are allowed");
}

TEST_F(hostile_peer_test, an_answer_that_nobody_asked_for_is_refused) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::answer, .call = 5}));
  expect_refused("answers what nobody has asked");
}

TEST_F(hostile_peer_test, an_actor_that_was_not_given_cannot_be_reached) {
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::message, .message = grant_place, .actor = agent->id()}));
  ASSERT_TRUE(peer.send_frame({.kind = frame_kind::message, .message = 999}));
  expect_refused("not for it to send");
}

} // namespace
} // namespace dlrun::link
