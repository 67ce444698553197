// The coordinator's shell: messages in, messages out, the journal and the report. Everybody else is
// a mailbox that the test looks into; waiting ends with the message that is waited for.
#include "actors/coordinator/coordinator.hpp"

#include "actors/coordinator/coordinator_journal.hpp"
#include "actors/coordinator/progress_book.hpp"
#include "actors/protocol/type_ids.hpp"
#include "base/sha256.hpp"
#include "tests/actors/mailbox.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::ps_shard_role;
using protocol::role_name;
using protocol::worker_role;
using test::take;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr auto patience = std::chrono::seconds(20);

/// The coordinator of a job with one worker and one PS shard.
class coordinator_test : public testing::Test {
protected:
  struct quiet : caf::actor_system_config {
    quiet() {
      set("scheduler.max-threads", 1);
      add_message_types<caf::id_block::dlrun>();
    }
  };

  coordinator_context spawn(std::vector<std::string> overrides, const protocol::fence& self = {{4}, 44}) {
    overrides.emplace_back("cluster.placement=threads");
    job = test::small_job(folder.path(), overrides);
    coordinator_context context{.role = {protocol::role_kind::coordinator, 0},
                                .self = self,
                                .job = job,
                                .agent = as<protocol::agent_actor>(*agent),
                                .log = std::make_shared<spdlog::logger>("test")};
    for (int i = 0; i < 2; ++i) dispatchers.emplace_back(std::in_place, system);
    const dispatcher_starter starter = [this](dlrun::incarnation, const auto&, const auto& opened) {
      journal = opened;
      return as<protocol::local_data_dispatcher_actor>(*dispatchers.at(next_dispatcher++));
    };
    coordinator = system.spawn(coordinator_state::start, context, starter);
    (*observer)->monitor(coordinator);
    return context;
  }
  void start(const std::vector<std::string>& overrides = {"durability.log=off"},
             const protocol::join_reply& let_in = {true, ""}, const protocol::fence& self = {{4}, 44}) {
    const auto context = spawn(overrides, self);
    bool asked = false;
    (*agent)->receive(
        [&](const protocol::join& question, const protocol::coordinator_actor&) {
          asked = question.self == context.self;
          return protocol::join_reply{let_in.accepted, let_in.reason, job->process};
        },
        caf::after(patience) >> [] {});
    ASSERT_TRUE(asked) << "it does not join";
  }
  template <class Handle>
  static Handle as(const caf::scoped_actor& who) {
    return caf::actor_cast<Handle>(caf::actor_cast<caf::strong_actor_ptr>(who));
  }
  template <class Message>
  void tell(Message message) {
    caf::anon_send(coordinator, std::move(message));
  }
  /// The first message of the kind that satisfies `wanted`, `Carried` with it; those of the kind
  /// before it are dropped, and all others wait.
  template <class Message, class... Carried>
  std::optional<Message> await(
      caf::scoped_actor& who,
      const std::function<bool(const Message&)>& wanted = [](const Message&) { return true; }) {
    std::optional<Message> found;
    bool late = false;
    while (!found && !late)
      who->receive(
          [&](const Message& one, const Carried&...) {
            if (wanted(one)) found = one;
          },
          caf::after(patience) >> [&late] { late = true; });
    return found;
  }
  /// With what the agent may start the role: a fence above `used`.
  protocol::fence await_fence(const role_name& role, std::uint64_t used = 0) {
    const auto is_there = [&] {
      return !granted[role].empty() && granted[role].back().incarnation.value > used;
    };
    while (!is_there()) {
      const auto more = await<protocol::grant>(*agent);
      if (!more) return {};
      granted[more->role] = more->fences;
    }
    return *std::ranges::find_if(granted[role],
                                 [&](const auto& one) { return one.incarnation.value > used; });
  }
  template <class Handle>
  protocol::join_reply join(caf::scoped_actor& who, const role_name& role, const protocol::fence& self,
                            const protocol::opened_store& store = {}) {
    protocol::join_reply answer{false, "no answer"};
    const protocol::join message{role, self, 100, {"", job->process, ""}, "A", "", store};
    who->request(coordinator, patience, message, as<Handle>(who))
        .receive([&](const protocol::join_reply& reply,
                     const protocol::data_dispatcher_actor&) { answer = reply; },
                 [&](const caf::error& why) { answer.reason = to_string(why); });
    return answer;
  }
  protocol::join_reply join_worker(const protocol::fence& self) {
    return join<protocol::worker_actor>(*worker, worker_role({0}), self);
  }
  /// A start that the agent tells of, and that joins.
  protocol::fence start_worker(std::uint64_t used = 0) {
    const auto self = await_fence(worker_role({0}), used);
    tell(protocol::role_started{worker_role({0}), self, 100});
    EXPECT_TRUE(join_worker(self).accepted);
    return self;
  }
  protocol::fence start_shard() {
    const auto self = await_fence(ps_shard_role({0}));
    EXPECT_TRUE(join<protocol::ps_shard_actor>(*shard, ps_shard_role({0}), self).accepted);
    return self;
  }
  void kill_worker(const protocol::fence& self) {
    tell(protocol::role_exited{worker_role({0}), self, "killed by signal 9 (SIGKILL)", 2000, true});
  }
  std::optional<dlrun::report> report() const {
    const auto read = read_report(folder.path() / "report.json");
    return read ? std::optional(*read) : std::nullopt;
  }
  caf::scoped_actor& dispatcher(std::size_t number = 0) { return *dispatchers.at(number); }

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job;
  std::shared_ptr<common::job_journal> journal; ///< of the coordinator
  quiet config;
  caf::actor_system system{config};
  std::optional<caf::scoped_actor> agent{std::in_place, system};
  std::optional<caf::scoped_actor> worker{std::in_place, system};
  std::optional<caf::scoped_actor> shard{std::in_place, system};
  std::optional<caf::scoped_actor> observer{std::in_place, system};
  std::deque<std::optional<caf::scoped_actor>> dispatchers; ///< one after the other is started
  std::size_t next_dispatcher = 0;
  std::map<role_name, std::vector<protocol::fence>> granted; ///< as the agent knows it
  protocol::coordinator_actor coordinator;

  void TearDown() override {
    caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown);
    coordinator = nullptr;
    dispatchers.clear();
    for (auto* one : {&agent, &worker, &shard, &observer}) one->reset();
    system.await_all_actors_done();
  }
};

/// Whether the directory names this start of worker 0 as one that can be spoken to.
std::function<bool(const protocol::directory&)> names_worker(incarnation self, bool joined) {
  return [self, joined](const protocol::directory& all) {
    return std::ranges::any_of(all.entries, [&](const auto& one) {
      return one.role == worker_role({0}) && one.incarnation == self && one.joined == joined;
    });
  };
}

TEST_F(coordinator_test, who_joins_is_made_known_to_the_dispatcher_and_to_the_others) {
  start();
  const auto shard_self = start_shard();
  const auto worker_self = start_worker();
  const auto shard_there = await<protocol::ps_shard_available, protocol::ps_shard_actor>(dispatcher());
  ASSERT_TRUE(shard_there);
  EXPECT_EQ(shard_there->incarnation, shard_self.incarnation);
  const auto worker_there = await<protocol::worker_available, protocol::worker_actor>(dispatcher());
  ASSERT_TRUE(worker_there);
  EXPECT_EQ(worker_there->incarnation, worker_self.incarnation);
  EXPECT_TRUE((await<protocol::directory, protocol::data_dispatcher_actor>(
      *shard, names_worker(worker_self.incarnation, true))));
}

TEST_F(coordinator_test, the_exit_of_a_worker_frees_its_slots_and_the_agent_has_a_fence_for_the_next) {
  start();
  start_shard();
  const auto self = start_worker();
  kill_worker(self);
  const auto gone = await<protocol::worker_gone>(dispatcher());
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->incarnation, self.incarnation);
  EXPECT_TRUE((await<protocol::directory, protocol::data_dispatcher_actor>(
      *shard, names_worker(self.incarnation, false))));
  const auto next = start_worker(self.incarnation.value);
  tell(protocol::slots_redispatched{{0}, self.incarnation, 8000});
  tell(protocol::worker_contributed{{{0}, next.incarnation, {5}}});
  const auto told =
      await<protocol::job_event>(*agent, [](const auto& one) { return one.event == "worker-resumed"; });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->incarnation, next.incarnation);
  EXPECT_THAT(told->text, HasSubstr("worker 0 contributes again from step 5"));
}

TEST_F(coordinator_test, what_an_older_start_says_and_what_is_said_of_it_changes_nothing) {
  start();
  const auto older = start_worker();
  const auto newer = await_fence(worker_role({0}), older.incarnation.value);
  EXPECT_TRUE(join_worker(newer).accepted);
  kill_worker(older);
  EXPECT_THAT(join_worker(older).reason, HasSubstr("is not the newest"));
  EXPECT_THAT(join_worker({newer.incarnation, newer.token + 1}).reason, HasSubstr("never issued"));
  EXPECT_TRUE(join_worker(newer).accepted);
  const auto gone = take<protocol::worker_gone>(dispatcher());
  ASSERT_THAT(gone, SizeIs(1)) << "when the newer one joined";
  EXPECT_EQ(gone[0].incarnation, older.incarnation);
}

TEST_F(coordinator_test, the_agent_hears_that_it_lives_and_that_its_dispatcher_does) {
  start();
  const auto beat = [this](protocol::role_kind kind) {
    std::optional<protocol::heartbeat> found;
    bool late = false;
    while (!found && !late)
      (*agent)->receive(
          [&](const protocol::heartbeat& one) {
            if (one.role.kind == kind) found = one;
            return protocol::coordinator_location{};
          },
          caf::after(patience) >> [&late] { late = true; });
    return found.value_or(protocol::heartbeat{});
  };
  EXPECT_EQ(beat(protocol::role_kind::coordinator).state, "coordinating");
  EXPECT_EQ(beat(protocol::role_kind::data_dispatcher).state, "dispatching");
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  while (beat(protocol::role_kind::coordinator).state == "coordinating") {
  }
  EXPECT_EQ(beat(protocol::role_kind::data_dispatcher).state, "done");
}

TEST_F(coordinator_test, a_dispatcher_that_ends_is_followed_by_another_which_hears_who_is_there) {
  start();
  const auto shard_self = start_shard();
  const auto worker_self = start_worker();
  ASSERT_TRUE((await<protocol::worker_available, protocol::worker_actor>(dispatcher())));
  dispatchers.at(0).reset();
  const auto shard_there = await<protocol::ps_shard_available, protocol::ps_shard_actor>(dispatcher(1));
  ASSERT_TRUE(shard_there);
  EXPECT_EQ(shard_there->incarnation, shard_self.incarnation);
  const auto worker_there = await<protocol::worker_available, protocol::worker_actor>(dispatcher(1));
  ASSERT_TRUE(worker_there);
  EXPECT_EQ(worker_there->incarnation, worker_self.incarnation);
}

// ---- the end

TEST_F(coordinator_test, a_finished_training_is_digested_and_reported_and_the_agent_hears_of_it) {
  start();
  start_shard();
  tell(protocol::training_finished{{0}, {job->steps()}});
  std::string digests;
  (*shard)->receive(
      [&](const protocol::digest_request& asked) {
        EXPECT_EQ(asked.version, version_id{job->steps()});
        digests = std::string(asked.count * 32, 'x');
        return protocol::digest_reply{asked.first_block, digests};
      },
      caf::after(patience) >> [] {});
  const auto ended = await<protocol::job_ended>(*agent);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, protocol::job_outcome::completed);
  ASSERT_TRUE(report());
  EXPECT_EQ(report()->status, run_status::completed);
  EXPECT_EQ(report()->parameters_sha256, base::sha256_hex(digests));
}

TEST_F(coordinator_test, a_job_that_is_stopped_has_a_report_without_digests) {
  start();
  const auto self = start_worker();
  kill_worker(self);
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  const auto ended = await<protocol::job_ended>(*agent);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, protocol::job_outcome::interrupted);
  EXPECT_FALSE(join_worker(await_fence(worker_role({0}), self.incarnation.value)).accepted);
  ASSERT_TRUE(report());
  EXPECT_EQ(report()->reason, "Ctrl-C");
  EXPECT_EQ(report()->parameters_sha256, "");
  ASSERT_THAT(report()->recoveries, SizeIs(1));
  EXPECT_EQ(report()->recoveries[0].cause, "killed by signal 9 (SIGKILL)");
}

/// As one that is stopped (SIGSTOP) for some seconds.
TEST_F(coordinator_test, an_agent_that_does_not_answer_is_asked_again) {
  spawn({"durability.log=off"});
  using answer = caf::result<protocol::join_reply>;
  int asked = 0;
  (*agent)->receive([&](const protocol::join&, const protocol::coordinator_actor&) -> answer {
    ++asked;
    return caf::delegated<protocol::join_reply>{}; // nobody answers
  });
  (*agent)->receive(
      [&](const protocol::join&, const protocol::coordinator_actor&) -> answer {
        ++asked;
        return protocol::join_reply{true, "", job->process};
      },
      caf::after(patience) >> [] {});
  ASSERT_EQ(asked, 2);
  EXPECT_GT(await_fence(worker_role({0})).incarnation.value, 0U);
}

TEST_F(coordinator_test, one_that_its_agent_does_not_want_ends_with_the_reason) {
  start({"durability.log=off"}, {false, "coordinator incarnation 5 exists"});
  std::string why;
  (*observer)->receive([&](const caf::down_msg& down) { why = to_string(down.reason); },
                       caf::after(patience) >> [] {});
  EXPECT_THAT(why, HasSubstr("coordinator incarnation 5 exists"));
}

// ---- with a journal

TEST_F(coordinator_test, a_ps_shard_whose_store_has_less_than_it_had_is_told_so_and_others_are_too) {
  start({});
  const auto first = await_fence(ps_shard_role({0}));
  const protocol::store_standing store{"alpha", 0xaaaaaaaa00000001, {0}};
  EXPECT_FALSE(
      join<protocol::ps_shard_actor>(*shard, ps_shard_role({0}), first, {store, {}, {}, {}, "it is new"})
          .store_is_short);
  protocol::training_progress progress;
  progress.shards.emplace_back();
  progress.shards[0].self = first;
  progress.shards[0].durable.restorable = {{{0}, {40}}};
  progress.shards[0].store = store;
  tell(progress);
  tell(protocol::role_exited{ps_shard_role({0}), first, "killed by signal 9 (SIGKILL)", 2000, true});
  const auto second = await_fence(ps_shard_role({0}), first.incarnation.value);
  const auto answer = join<protocol::ps_shard_actor>(*shard, ps_shard_role({0}), second,
                                                     {store, first.incarnation, {}, {12}, ""});
  EXPECT_TRUE(answer.accepted);
  EXPECT_TRUE(answer.store_is_short);
  const auto told =
      await<protocol::job_event>(*agent, [](const auto& one) { return one.event == "store-short"; });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->role, ps_shard_role({0}));
  EXPECT_EQ(told->incarnation, second.incarnation);
  EXPECT_EQ(told->place, (protocol::event_place{"alpha", "it is an older copy of itself"}));
  EXPECT_EQ(told->numbers.values, (std::vector{protocol::named_number("acknowledged", 40.0),
                                               protocol::named_number("found", 12.0)}));
  while (read_stores(journal->entries())[{0}].losses.empty()) std::this_thread::yield();
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  ASSERT_TRUE(report());
  ASSERT_THAT(report()->store_losses, SizeIs(1));
  EXPECT_EQ(report()->store_losses[0].store, "aaaaaaaa00000001");
  EXPECT_EQ(report()->store_losses[0].acknowledged, 40U);
  EXPECT_EQ(report()->store_losses[0].found, 12U);
}

/// Also in the second in which it would not be written otherwise: when it is over nobody writes.
TEST_F(coordinator_test, what_a_store_has_acknowledged_is_journaled_when_the_job_is_stopped_in_order) {
  start({});
  const auto self = await_fence(ps_shard_role({0}));
  const protocol::store_standing store{"alpha", 0xaaaaaaaa00000001, {0}};
  ASSERT_TRUE(
      join<protocol::ps_shard_actor>(*shard, ps_shard_role({0}), self, {store, {}, {}, {}, "it is new"})
          .accepted);
  const auto say = [&](std::uint64_t version) {
    protocol::training_progress progress;
    progress.shards.emplace_back();
    progress.shards[0].self = self;
    progress.shards[0].durable.restorable = {{{0}, {version}}};
    progress.shards[0].store = store;
    tell(progress);
  };
  const auto is_journaled = [this](std::uint64_t version) {
    return newest_of(read_stores(journal->entries())[{0}]) == version_id{version};
  };
  say(10);
  while (!is_journaled(10)) std::this_thread::yield();
  say(40);
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown);
  (*observer)->receive([](const caf::down_msg&) {});
  const auto late = std::chrono::steady_clock::now() + patience;
  while (!is_journaled(40) && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  EXPECT_TRUE(is_journaled(40));
}

/// Also what was told in the second in which it would not be written otherwise.
TEST_F(coordinator_test,
       a_start_that_is_stopped_before_it_has_heard_of_anybody_reports_what_was_done_before) {
  start({});
  const auto say = [&](std::uint64_t steps) {
    protocol::training_progress progress;
    auto& told = progress.shards.emplace_back();
    told.applied = {steps};
    told.ledger.samples_applied = 3 * steps;
    progress.tallies.push_back({.role = ps_shard_role({0}), .incarnation = {1}, .bytes_logged = 100 * steps});
    tell(progress);
  };
  say(6);
  while (progress_book{journal->entries()}.all().empty()) std::this_thread::yield();
  say(9);
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C"});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  const auto first = report();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->steps, 9U);
  caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown);
  (*observer)->receive([](const caf::down_msg&) {});
  journal.reset();
  std::filesystem::remove(folder.path() / "report.json");

  start({}, {true, ""}, {{5}, 55});
  tell(protocol::stop_job{protocol::job_outcome::interrupted, "Ctrl-C again"});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  const auto second = report();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->reason, "Ctrl-C again");
  EXPECT_EQ(second->steps, 9U);
  EXPECT_EQ(second->samples_committed, 27U);
  EXPECT_EQ(second->bytes_logged, 900U);
  EXPECT_GE(second->wall_seconds, first->wall_seconds);
}

TEST_F(coordinator_test, nothing_can_be_started_with_a_fence_that_is_not_in_the_journal) {
  start({});
  const auto self = await_fence(worker_role({0}));
  const auto kept = read_job(journal->entries());
  ASSERT_TRUE(kept);
  const auto page = std::ranges::find(kept->roles, worker_role({0}), &journaled_role::role);
  ASSERT_NE(page, kept->roles.end());
  EXPECT_THAT(page->usable, testing::Contains(self));
}

TEST_F(coordinator_test, a_number_of_workers_is_journaled_before_agent_and_dispatcher_hear_of_it) {
  start({});
  tell(protocol::scale_job{job->process, 1, 2});
  const auto is_two = [](const protocol::workers_wanted& word) { return word.workers == 2; };
  const auto told = await<protocol::workers_wanted>(*agent, is_two);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->request, 1U);
  EXPECT_TRUE(journal->entries().contains("workers"));
  EXPECT_TRUE(await<protocol::workers_wanted>(dispatcher(), is_two));
  EXPECT_GT(await_fence(worker_role({1})).incarnation, incarnation{});
}

TEST_F(coordinator_test, a_finished_job_is_journaled_before_the_agent_hears_of_it) {
  start({});
  start_shard();
  tell(protocol::training_finished{{2}, {job->steps()}});
  (*shard)->receive(
      [&](const protocol::digest_request& asked) {
        return protocol::digest_reply{asked.first_block, std::string(asked.count * 32, 'x')};
      },
      caf::after(patience) >> [] {});
  ASSERT_TRUE(await<protocol::close_training>(dispatcher()));
  EXPECT_THAT(take<protocol::job_ended>(*agent), IsEmpty());
  tell(protocol::training_closed{{2}});
  ASSERT_TRUE(await<protocol::job_ended>(*agent));
  EXPECT_TRUE(read_job(journal->entries())->ended);
}

/// Before it has joined, with an agent that lets nobody hang for long.
TEST_F(coordinator_test, while_no_etcd_answers_it_gives_signs_of_life_and_says_what_it_waits_for) {
  spawn({"cluster.journal={etcd: {endpoints: ['http://127.0.0.1:1'], prefix: x}}"});
  const auto told = await<protocol::job_event>(*agent);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->event, "journal-away");
  EXPECT_THAT(told->text, HasSubstr("http://127.0.0.1:1"));
  for (int beats = 0; beats < 3; ++beats) {
    const auto beat = await<protocol::heartbeat>(*agent);
    ASSERT_TRUE(beat);
    EXPECT_EQ(beat->state, "no-journal");
    EXPECT_EQ(beat->self.incarnation, incarnation{4});
  }
}

} // namespace
} // namespace dlrun::coordinator
