// The agent of the job and the agent of another host in one actor system, in virtual time: roles
// are scripts, and a dropped or lost message is one that the test does not deliver.
#include "actors/agent/agent.hpp"
#include "actors/agent/host_agent.hpp"

#include "tests/actors/agent/hosts_by_hand.hpp"
#include "tests/actors/agent/slow_file.hpp"
#include "tests/actors/mailbox.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/actors/virtual_actors.hpp"
#include "tests/data/files.hpp"

#include <algorithm>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;
using protocol::role_name;
using testing::HasSubstr;
using testing::IsEmpty;

class host_agent_test : public testing::Test, protected test::virtual_time {
protected:
  host_agent_test() {
    routed = std::make_shared<routed_launcher>(routed_launcher_options{
        .hosts = {.root = "alpha", .root_cpus = 1, .hosts = {{"beta", 8}}},
        .here = here,
        .starter = starter,
        .issue =
            [](const role_name& role, const std::string& host) {
              return protocol::role_credentials{protocol::to_string(role), "key", host};
            },
        .beats = root_beats,
        .now = [this] { return now; },
        .run_dir = folder.path(),
        .folder_of = [](const std::string& host) -> std::string {
          return host == "beta" ? "/there/run" : "";
        }});
    agent = system.spawn(agent_state::start, agent_arguments{.job = job,
                                                             .coordinator = {{1}, 77},
                                                             .launcher = routed,
                                                             .board = board,
                                                             .log = log,
                                                             .now = [this] { return now; },
                                                             .hosts = routed,
                                                             .pulse = root_pulse});
    dispatch();
  }
  void TearDown() override {
    if (agent) caf::anon_send_exit(agent, caf::exit_reason::kill);
    if (beta) caf::anon_send_exit(beta, caf::exit_reason::kill);
    agent = nullptr;
    beta = nullptr;
    routed = nullptr;
    dispatch();
  }

  /// The agent of beta comes up.
  void start_beta(std::uint64_t boot) {
    there = std::make_shared<order_book>();
    beta_beats = std::make_shared<beats_by_hand>("10.0.0.2:5000");
    beta = system.spawn(host_agent_state::start,
                        host_agent_arguments{.core = {.host = "beta", .boot = boot, .orphan_grace = 10s},
                                             .cpus = 8,
                                             .stores = stores_of_beta,
                                             .folder = folder.path() / "beta",
                                             .dial =
                                                 [this](const auto& found) {
                                                   ++dials;
                                                   if (is_out_of_reach) return; // as a host that is gone
                                                   if (agent)
                                                     found(agent);
                                                   else
                                                     found(fail(error_code::role_lost, "nobody is there"));
                                                 },
                                             .place = place,
                                             .leave_root = [this] { ++left; },
                                             .launcher = there,
                                             .beats = beta_beats,
                                             .root = {.name = "alpha"},
                                             .log = log,
                                             .has_notice = [this] { return std::exchange(notice, false); },
                                             .now = [this] { return now; },
                                             .pulse = beta_pulse});
    dispatch();
  }
  void lose_beta() {
    caf::anon_send_exit(beta, caf::exit_reason::kill);
    beta = nullptr;
    dispatch();
  }
  /// The coordinator is up, and has granted what roles start with.
  void begin_job() {
    caf::anon_send(agent, protocol::tick{});
    dispatch();
    here->started(here->starts.at(0));
    dispatch();
    const protocol::join message{{role_kind::coordinator, 0}, {{1}, 77}, 100, {}, {}};
    auto question = coordinator->request(
        agent, 1s, message,
        caf::actor_cast<protocol::coordinator_actor>(caf::actor_cast<caf::strong_actor_ptr>(coordinator)));
    dispatch();
    question.receive([](const protocol::join_reply& reply) { EXPECT_TRUE(reply.accepted); },
                     [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
    for (const auto& role : {shard_role, worker_role}) {
      protocol::grant grant{role, {}, job->process};
      for (std::uint64_t i = 1; i < 6; ++i) grant.fences.push_back({{i}, 1000 + i});
      caf::anon_send(agent, grant);
    }
    dispatch();
    if (here->has(shard_role)) here->started(here->starts.back());
    dispatch();
  }

  void begin_with_a_worker_at_beta() {
    start_beta(7);
    begin_job();
    there->started(there->starts.at(0));
    dispatch();
  }
  /// That worker.
  void let_it_train() {
    caf::anon_send(agent, protocol::heartbeat{
                              .role = worker_role, .self = there->starts.at(0).self, .state = "training"});
  }

  /// Until `closed` a process of before has the store open. On the test's thread nobody waits.
  static auto look_that_waits(std::promise<void>& closed) {
    return [test = std::this_thread::get_id(),
            open = closed.get_future().share()](const std::vector<protocol::running_start>&) {
      if (std::this_thread::get_id() != test) open.wait();
      return std::vector<protocol::held_store>{{{0}, {1}, {1}, step_id{40}}};
    };
  }

  /// Of beta, which reads on a thread of its own.
  template <class Answer, class Wanted>
  Answer ask_beta(const Wanted& wanted) {
    const caf::scoped_actor asker{system};
    auto question = asker->request(beta, 60s, wanted);
    dispatch_until([&] { return asker->has_next_message(); });
    Answer all;
    question.receive([&](const Answer& answer) { all = answer; },
                     [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
    return all;
  }

  static constexpr std::chrono::milliseconds longer_than_a_hang = 6s;
  static_assert(longer_than_a_hang > watch_rules{}.hang_max);
  static constexpr role_name shard_role{role_kind::ps_shard, 0};
  static constexpr role_name worker_role{role_kind::worker, 0};

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  caf::scoped_actor coordinator{system};
  std::shared_ptr<spdlog::logger> log = std::make_shared<spdlog::logger>("test");
  std::shared_ptr<order_book> here = std::make_shared<order_book>();
  std::shared_ptr<order_book> there;
  std::shared_ptr<order_of_hosts> starter = std::make_shared<order_of_hosts>();
  std::shared_ptr<beats_by_hand> root_beats = std::make_shared<beats_by_hand>("10.0.0.1:4000");
  std::shared_ptr<beats_by_hand> beta_beats;
  std::shared_ptr<run_board> board = std::make_shared<run_board>();
  std::shared_ptr<base::pulse> root_pulse = std::make_shared<base::pulse>();
  std::shared_ptr<base::pulse> beta_pulse = std::make_shared<base::pulse>();
  std::shared_ptr<routed_launcher> routed;
  protocol::agent_actor agent;
  protocol::host_agent_actor beta;
  decltype(host_agent_arguments::stores) stores_of_beta;
  bool notice = false; ///< for beta: it is to leave
  int dials = 0;       ///< of beta
  int left = 0;        ///< links to the root that beta ended
  bool is_out_of_reach = false;
  std::shared_ptr<common::root_place> place =
      std::make_shared<common::root_place>(common::root_place::create().value());
};

TEST_F(host_agent_test, a_run_waits_until_all_hosts_are_there) {
  EXPECT_THAT(starter->runs, testing::ElementsAre("beta"));
  EXPECT_THAT(routed->waiting().wait_until_there(0s).error().message, HasSubstr("beta"));
  start_beta(7);
  EXPECT_TRUE(routed->waiting().wait_until_there(0s).has_value());
}

TEST_F(host_agent_test, a_run_is_told_why_a_host_did_not_come_up) {
  starter->end("exited with code 2: dlrun: the data is not that of host alpha");
  dispatch();
  const auto failed = routed->waiting().wait_until_there(0s);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, error_code::bad_usage);
  EXPECT_THAT(failed.error().message,
              testing::AllOf(HasSubstr("host beta"), HasSubstr("is not that of host alpha")));
}

TEST_F(host_agent_test, a_host_that_answers_no_beat_is_lost_at_once) {
  begin_with_a_worker_at_beta();
  let_it_train();
  EXPECT_EQ(root_beats->watched.at("beta").boot, 7U);
  root_beats->see("beta", {sight::there, 0ms});
  root_beats->see("beta", {sight::silent, 710ms});
  dispatch();
  EXPECT_FALSE(root_beats->watched.contains("beta"));
  EXPECT_TRUE(here->has(worker_role));
}

TEST_F(host_agent_test, a_host_that_is_asked_to_leave_hands_its_worker_over_and_goes) {
  begin_with_a_worker_at_beta();
  caf::scoped_actor watcher{system};
  watcher->monitor(beta);
  notice = true;
  pass(300ms);
  EXPECT_THAT(there->stops, testing::Contains(worker_role));
  EXPECT_FALSE(watcher->has_next_message());
  there->exited(there->starts.at(0), {.cause = "left", .left = true});
  pass(300ms);
  EXPECT_TRUE(here->has(worker_role));
  EXPECT_TRUE(watcher->has_next_message());
  EXPECT_EQ(routed->roles().roster().state_of("beta"), host_state::away);
}

TEST_F(host_agent_test, both_ends_count_their_turns_while_the_job_runs) {
  start_beta(7);
  begin_job();
  const auto before = root_beats->turns;
  pass(1s);
  EXPECT_GE(root_beats->turns - before, 9);
  EXPECT_GE(beta_beats->turns, 9);
}

TEST_F(host_agent_test, both_ends_are_alive_while_they_turn_and_when_they_have_ended) {
  const auto later = [] { return std::chrono::steady_clock::now() + base::loop_pulse::still_max + 1ms; };
  EXPECT_TRUE(root_pulse->is_alive(later())) << "the job has not begun";
  start_beta(7);
  begin_job();
  pass(1s);
  for (const auto& one : {root_pulse, beta_pulse}) {
    EXPECT_TRUE(one->is_alive(std::chrono::steady_clock::now()));
    EXPECT_FALSE(one->is_alive(later())) << "if it did not turn any more";
  }
  lose_beta();
  EXPECT_TRUE(beta_pulse->is_alive(later()));
  caf::anon_send_exit(agent, caf::exit_reason::kill);
  agent = nullptr;
  dispatch();
  EXPECT_TRUE(root_pulse->is_alive(later()));
}

/// Of R39.
TEST_F(host_agent_test, an_agent_looks_for_the_root_at_once_where_that_calls_from) {
  is_out_of_reach = true;
  start_beta(7);
  pass(1s);
  EXPECT_EQ(dials, 1); // of which it hears nothing
  EXPECT_FALSE(beta_pulse->is_ready(std::chrono::steady_clock::now()));
  is_out_of_reach = false;
  beta_beats->see("alpha", {sight::unproven, 0ms, "10.0.0.9:4000"});
  dispatch();
  EXPECT_EQ(dials, 2);
  EXPECT_EQ(place->now("a@10.0.0.1:50"), "a@10.0.0.9:50");
  EXPECT_TRUE(beta_pulse->is_ready(std::chrono::steady_clock::now()));
  EXPECT_TRUE(routed->waiting().wait_until_there(0s).has_value());
  beta_beats->see("alpha", {sight::there, 0ms, "10.0.0.9:4000"});
  pass(1s);
  EXPECT_EQ(dials, 2);
}

TEST_F(host_agent_test, an_agent_ends_its_link_to_an_older_root_when_a_newer_one_calls_from_elsewhere) {
  start_beta(7);
  beta_beats->see("alpha", {sight::there, 0ms, "10.0.0.1:4000"});
  dispatch();
  EXPECT_EQ(left, 0) << "that is the root that it was told of";
  beta_beats->see("alpha", {sight::there, 0ms, "10.0.0.9:4000"});
  dispatch();
  EXPECT_EQ(left, 1);
  beta_beats->see("alpha", {sight::silent, 710ms, "10.0.0.9:4000"});
  dispatch();
  EXPECT_EQ(left, 1);
}

TEST_F(host_agent_test, an_agent_leaves_when_the_root_answers_no_beat_for_longer_than_its_grace) {
  start_beta(7);
  beta_beats->see("alpha", {sight::there, 0ms});
  beta_beats->see("alpha", {sight::silent, 710ms});
  caf::scoped_actor watcher{system};
  watcher->monitor(beta);
  dispatch();
  pass(9900ms);
  EXPECT_FALSE(watcher->has_next_message());
  pass(200ms);
  EXPECT_TRUE(watcher->has_next_message());
}

TEST_F(host_agent_test, a_worker_runs_on_the_host_that_has_the_cores) {
  start_beta(7);
  begin_job();
  ASSERT_TRUE(there->has(worker_role));
  EXPECT_EQ(there->starts.at(0).coordinator->self.incarnation, dlrun::incarnation{1});
  EXPECT_EQ(there->starts.at(0).credentials->certificate, "worker 0");
  EXPECT_EQ(there->starts.at(0).credentials->authority, "beta");
  EXPECT_EQ(here->starts.at(0).credentials->authority, "alpha");
  there->started(there->starts.at(0));
  dispatch();
  EXPECT_EQ(test::take<protocol::role_started>(coordinator).back().role, worker_role);
}

TEST_F(host_agent_test, the_newest_start_of_a_role_gets_certificates_for_the_host_it_is_on) {
  start_beta(7);
  begin_job();
  const auto self = there->starts.at(0).self;
  const auto given = routed->on_credentials_wanted({worker_role, self.incarnation});
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->authority, "beta");
  EXPECT_EQ(routed->on_credentials_wanted({shard_role, {1}})->authority, "alpha");
  EXPECT_EQ(routed->on_credentials_wanted({{role_kind::host_agent, 1}, {7}})->authority, "beta");
  EXPECT_FALSE(routed->on_credentials_wanted({worker_role, {self.incarnation.value + 1}}));
  EXPECT_FALSE(routed->on_credentials_wanted({{role_kind::host_agent, 1}, {8}}));
}

TEST_F(host_agent_test, a_worker_that_dies_there_is_started_there_again) {
  begin_with_a_worker_at_beta();
  let_it_train();
  there->exited(there->starts.at(0), {.cause = "killed by signal 9 (KILL)"});
  dispatch();
  EXPECT_THAT(test::take<protocol::role_exited>(coordinator).at(0).cause,
              HasSubstr("signal 9 (KILL) on host beta"));
  ASSERT_EQ(there->starts.size(), 2U);
  EXPECT_EQ(there->starts.at(1).self.incarnation, dlrun::incarnation{2});
  EXPECT_FALSE(here->has(worker_role));
}

TEST_F(host_agent_test, the_roles_of_a_host_whose_agent_is_lost_start_elsewhere) {
  begin_with_a_worker_at_beta();
  let_it_train();
  lose_beta();
  starter->end("killed by signal 9 (KILL)");
  pass(100ms);
  EXPECT_THAT(test::take<protocol::role_exited>(coordinator).at(0).cause, HasSubstr("lost with host beta"));
  EXPECT_TRUE(here->has(worker_role));
}

TEST_F(host_agent_test, a_host_that_comes_back_is_let_in_under_a_new_boot_only) {
  start_beta(7);
  begin_job();
  lose_beta();
  pass(1500ms);
  caf::scoped_actor watch{system};
  start_beta(7);
  watch->monitor(beta);
  pass(200ms);
  bool ended = false;
  watch->receive([&](const caf::down_msg&) { ended = true; }, caf::after(0s) >> [] {});
  EXPECT_TRUE(ended);
  start_beta(8);
  EXPECT_TRUE(routed->waiting().wait_until_there(0s).has_value());
}

TEST_F(host_agent_test, a_host_agent_leaves_when_its_root_is_gone_for_long) {
  start_beta(7);
  caf::scoped_actor watch{system};
  watch->monitor(beta);
  caf::anon_send_exit(agent, caf::exit_reason::kill);
  agent = nullptr;
  dispatch();
  pass(9s);
  bool ended = false;
  watch->receive([&](const caf::down_msg&) { ended = true; }, caf::after(0s) >> [] {});
  EXPECT_FALSE(ended);
  EXPECT_TRUE(beta_pulse->is_ready(std::chrono::steady_clock::now())) << "it has its stores";
  pass(2s);
  watch->receive([&](const caf::down_msg&) { ended = true; }, caf::after(0s) >> [] {});
  EXPECT_TRUE(ended);
}

TEST_F(host_agent_test, what_a_worker_there_is_at_reaches_the_agent) {
  start_beta(7);
  begin_job();
  there->work = {{worker_role, there->starts.at(0).self, 5, std::nullopt}};
  pass(100ms);
  const auto seen = routed->look();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen.at(0).sequence, 5U);
}

TEST_F(host_agent_test, its_logs_can_be_had_while_the_job_runs) {
  start_beta(7);
  begin_job();
  EXPECT_NE(ask_beta<protocol::log_listing>(protocol::log_listing_wanted{}).failure, "")
      << "there is no folder";
  std::filesystem::create_directories(folder.path() / "beta" / "logs");
  std::ofstream{folder.path() / "beta" / "logs" / "worker-0.log"} << "0123456789";
  const auto listing = ask_beta<protocol::log_listing>(protocol::log_listing_wanted{});
  EXPECT_EQ(listing.failure, "");
  EXPECT_THAT(listing.logs, testing::ElementsAre(protocol::kept_log{worker_role, 10}));
  EXPECT_EQ(ask_beta<protocol::log_part>(protocol::log_part_wanted{worker_role, 4, 100}).bytes, "456789");
  EXPECT_NE(ask_beta<protocol::log_part>(protocol::log_part_wanted{shard_role, 0, 100}).failure, "");
}

TEST_F(host_agent_test, its_snapshots_can_be_kept_and_had_while_the_job_runs) {
  start_beta(7);
  begin_job();
  const protocol::snapshots_wanted wanted{{0}, {"40-0.snap"}};
  EXPECT_NE(ask_beta<protocol::store_listing>(wanted).failure, "") << "there is no store";
  const auto snapshots = folder.path() / "beta" / "ps_shard-0" / "snapshots";
  std::filesystem::create_directories(snapshots);
  std::ofstream{snapshots / "40-0.snap"} << "0123456789";
  const auto listing = ask_beta<protocol::store_listing>(wanted);
  EXPECT_EQ(listing.failure, "");
  EXPECT_THAT(listing.files, testing::ElementsAre(protocol::stored_file{"40-0.snap", 10, false}));
  std::filesystem::remove(snapshots / "40-0.snap");
  const auto read = [this](const std::string& file) {
    return ask_beta<protocol::store_part>(protocol::snapshot_part_wanted{{0}, file, 4, 100});
  };
  EXPECT_EQ(read("40-0.snap").bytes, "456789");
  EXPECT_NE(read("50-0.snap").failure, "");
}

TEST_F(host_agent_test, who_has_a_store_open_that_a_host_looks_at_holds_up_none_of_its_turns) {
  std::promise<void> closed;
  stores_of_beta = look_that_waits(closed);
  start_beta(7);
  pass(longer_than_a_hang);
  EXPECT_GE(beta_beats->turns, 59);
  EXPECT_FALSE(routed->waiting().wait_until_there(0s).has_value()) << "it tells what it has first";
  closed.set_value();
  dispatch_until([&] { return routed->waiting().wait_until_there(0s).has_value(); });
  const auto* told = routed->roles().places().stores().find("beta", {0});
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->end, step_id{40});
}

TEST_F(host_agent_test, what_a_host_has_is_not_told_to_a_root_that_is_gone_meanwhile) {
  std::promise<void> closed;
  stores_of_beta = look_that_waits(closed);
  start_beta(7);
  caf::anon_send_exit(agent, caf::exit_reason::kill);
  agent = nullptr;
  dispatch();
  closed.set_value();
  ask_beta<protocol::log_listing>(protocol::log_listing_wanted{}); // is answered behind that
  const auto before = dials;
  pass(1s);
  EXPECT_GE(dials - before, 9);
}

TEST_F(host_agent_test, a_disk_that_stands_still_holds_up_the_files_of_stores_and_no_turn) {
  start_beta(7);
  begin_job();
  const auto store = folder.path() / "beta" / "ps_shard-0";
  std::filesystem::create_directories(store);
  std::ofstream{store / "quick"} << "0123456789";
  test::slow_file slow{store / "slow"};
  const caf::scoped_actor asker{system};
  auto unread = asker->request(beta, 60s, protocol::store_part_wanted{{0}, "slow", 0, 1});
  const caf::scoped_actor later{system};
  auto listed = later->request(beta, 60s, protocol::store_listing_wanted{{0}});
  const auto before = beta_beats->turns;
  pass(longer_than_a_hang);
  EXPECT_GE(beta_beats->turns - before, 59);
  EXPECT_FALSE(asker->has_next_message() || later->has_next_message());
  slow.release();
  dispatch_until([&] { return later->has_next_message(); });
  const auto unanswered = [](const caf::error& why) { ADD_FAILURE() << to_string(why); };
  unread.receive([](const protocol::store_part& part) { EXPECT_THAT(part.failure, HasSubstr("slow")); },
                 unanswered);
  listed.receive(
      [](const protocol::store_listing& all) {
        EXPECT_THAT(all.files, testing::ElementsAre(protocol::stored_file{"quick", 10, false}));
      },
      unanswered);
}

TEST_F(host_agent_test, the_root_knows_which_hosts_can_be_asked_for_logs) {
  EXPECT_THAT(routed->links().with_logs(), IsEmpty()) << "none has come";
  EXPECT_EQ(routed->links().agent_of("beta").error().code, error_code::role_lost);
  EXPECT_EQ(routed->links().agent_of("nowhere").error().code, error_code::bad_usage);
  start_beta(7);
  EXPECT_TRUE(routed->links().agent_of("beta").has_value());
  ASSERT_EQ(routed->links().with_logs().size(), 1U);
  EXPECT_TRUE(routed->links().with_logs().at(0).agent);
  lose_beta();
  starter->end("killed by signal 9 (KILL)");
  pass(1500ms);
  EXPECT_EQ(routed->links().agent_of("beta").error().code, error_code::role_lost);
  ASSERT_EQ(routed->links().with_logs().size(), 1U) << "its logs are missing, which is told";
  EXPECT_FALSE(routed->links().with_logs().at(0).agent);
  routed->dismiss("the job is over");
  EXPECT_EQ(routed->links().agent_of("beta").error().code, error_code::interrupted);
}

} // namespace
} // namespace dlrun::agent
