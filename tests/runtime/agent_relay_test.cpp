#include "runtime/agent_relay.hpp"

#include "actors/common/actor_config.hpp"
#include "runtime/job_identity.hpp"
#include "tests/actors/quiet_agent.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using protocol::agent_actor;
using protocol::role_kind;

constexpr auto patience = 20s;
constexpr protocol::credentials_wanted worker{{role_kind::worker, 3}, {5}};

/// An agent that answers heartbeats with `number`, and issues certificates.
agent_actor::behavior_type play_agent(agent_actor::pointer, std::uint64_t number,
                                      const std::shared_ptr<const job_identity>& issuer) {
  return test::quiet_agent(
      [number](const protocol::heartbeat&) {
        return protocol::coordinator_location{{number}, {}};
      },
      [issuer](const protocol::credentials_wanted& wanted) {
        return issuer->issue(wanted.role, "beta").value();
      });
}

class agent_relay_test : public testing::Test {
protected:
  agent_actor spawn_agent(std::uint64_t number) { return system.spawn(play_agent, number, issuer); }

  agent_relay_options options_for(const agent_actor& first) {
    return {.first = first,
            .dial = [this](const auto& found) { found(next); },
            .self = worker,
            .identity = identity,
            .lifetime = 1s,
            .log = log};
  }
  std::unique_ptr<agent_relay> relay_to(const agent_actor& first) {
    return std::make_unique<agent_relay>(system, options_for(first));
  }
  /// Which agent answers; 0: none does.
  std::uint64_t who_answers(const agent_relay& relay) {
    std::uint64_t number = 0;
    caf::scoped_actor self{system};
    self->request(relay.agent(), 5s, protocol::heartbeat{})
        .receive([&](const protocol::coordinator_location& where) { number = where.incarnation.value; },
                 [](const caf::error&) {});
    return number;
  }
  template <class Condition>
  static bool eventually(const Condition& condition) {
    const auto due = std::chrono::steady_clock::now() + patience;
    while (!condition())
      if (std::this_thread::yield(); std::chrono::steady_clock::now() >= due) return false;
    return true;
  }

  common::actor_config config{2};
  caf::actor_system system{config};
  security::certificate_authority authority = security::certificate_authority::make("7").value();
  std::shared_ptr<const job_identity> issuer = job_identity::make("7", authority.pem().value(), 1s).value();
  std::shared_ptr<security::tls_context> identity =
      security::tls_context::make(to_credentials(issuer->issue(worker.role, "beta").value())).value();
  std::shared_ptr<spdlog::logger> log = std::make_shared<spdlog::logger>("test");
  result<agent_actor> next = fail(error_code::role_lost, "nobody is there");
};

TEST_F(agent_relay_test, hands_on_what_the_agent_is_asked) {
  EXPECT_EQ(who_answers(*relay_to(spawn_agent(1))), 1U);
}

TEST_F(agent_relay_test, finds_the_agent_that_is_there_when_the_one_before_is_lost) {
  const auto first = spawn_agent(1);
  const auto relay = relay_to(first);
  next = spawn_agent(2);
  caf::anon_send_exit(first, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return who_answers(*relay) == 2; }));
}

/// The try where the agent was is never answered, as by a host that is gone.
TEST_F(agent_relay_test, looks_at_once_where_the_agent_is_now_and_waits_for_no_answer_from_where_it_was) {
  const auto first = spawn_agent(1);
  const auto place = std::make_shared<common::root_place>(common::root_place::create().value());
  auto options = options_for(first);
  options.place = place;
  const auto second = spawn_agent(2);
  std::atomic<int> tries = 0;
  options.dial = [&, place](const auto& found) {
    ++tries;
    if (place->number() != 0) found(second);
  };
  const agent_relay relay{system, std::move(options)};
  caf::anon_send_exit(first, caf::exit_reason::kill);
  ASSERT_TRUE(eventually([&] { return tries == 1; }));
  EXPECT_TRUE(place->move_to("10.0.0.9:5000"));
  EXPECT_TRUE(eventually([&] { return who_answers(relay) == 2; }));
  EXPECT_EQ(tries, 2);
}

/// It lives, and may have been cut off from others alone.
TEST_F(agent_relay_test, leaves_the_agent_that_is_there_when_a_newer_one_calls_from_elsewhere) {
  const auto first = spawn_agent(1);
  const auto place = std::make_shared<common::root_place>(common::root_place::create().value());
  auto options = options_for(first);
  options.place = place;
  std::atomic<int> left = 0;
  options.leave = [&] {
    ++left;
    caf::anon_send_exit(first, caf::exit_reason::kill);
  };
  next = spawn_agent(2);
  const auto before = identity->current();
  const agent_relay relay{system, std::move(options)};
  EXPECT_TRUE(place->move_to("10.0.0.1:5000"));
  EXPECT_TRUE(eventually([&] { return identity->current() != before; })) << "it looks meanwhile";
  EXPECT_EQ(left, 0) << "the first call is of the agent that was told";
  EXPECT_EQ(who_answers(relay), 1U);
  EXPECT_TRUE(place->move_to("10.0.0.9:5000"));
  EXPECT_TRUE(eventually([&] { return who_answers(relay) == 2; }));
  EXPECT_GE(left, 1);
}

/// As by a host that is gone.
TEST_F(agent_relay_test, tries_where_the_agent_was_told_to_be_beside_and_waits_for_no_answer_from_there) {
  const auto place = std::make_shared<common::root_place>(common::root_place::create().value());
  std::vector<std::string> tried;
  int found = 0;
  const auto dial = agent_dial(
      [&](const std::string& address, const auto& done) {
        tried.push_back(address);
        if (address != "root@10.0.0.1:5000") done(fail(error_code::system, "nobody listens there"));
      },
      "root@10.0.0.1:5000", place);
  EXPECT_TRUE(place->move_to("10.0.0.9:42"));
  for (int i = 0; i < 100; ++i) dial([&](const auto&) { ++found; });
  EXPECT_EQ(found, 100);
  EXPECT_EQ(std::ranges::count(tried, "root@10.0.0.9:5000"), 100);
  EXPECT_EQ(std::ranges::count(tried, "root@10.0.0.1:5000"), 10) << "it may be reached there alone";
}

TEST_F(agent_relay_test, answers_nobody_when_one_is_lost_that_is_not_to_be_found_again) {
  const auto first = spawn_agent(1);
  auto options = options_for(first);
  options.dial = nullptr;
  next = spawn_agent(2);
  const agent_relay relay{system, std::move(options)};
  caf::anon_send_exit(first, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return who_answers(relay) == 0; }));
}

TEST_F(agent_relay_test, renews_the_certificate_before_it_ends_again_and_again) {
  const auto relay = relay_to(spawn_agent(1));
  for (int i = 0; i < 2; ++i) {
    const auto before = identity->current();
    EXPECT_TRUE(eventually([&] { return identity->current() != before; }));
  }
}

TEST_F(agent_relay_test, renews_it_also_where_it_has_to_find_the_agent_first) {
  next = spawn_agent(1);
  const auto before = identity->current();
  const auto relay = relay_to({});
  EXPECT_TRUE(eventually([&] { return identity->current() != before; }));
}

} // namespace
} // namespace dlrun::runtime
