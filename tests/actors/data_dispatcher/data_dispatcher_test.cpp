// The dispatcher's shell: a message in, a message out. Delayed messages come when the test says so.
#include "actors/data_dispatcher/data_dispatcher.hpp"

#include "actors/data_dispatcher/course_journal.hpp"
#include "actors/protocol/type_ids.hpp"
#include "tests/actors/mailbox.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/actors/virtual_actors.hpp"
#include "tests/data/files.hpp"

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;
using test::take;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Everybody else is a mailbox that the test looks into.
class data_dispatcher_test : public testing::Test {
protected:
  void start(const std::vector<std::string>& overrides = {"durability.log=off"},
             const std::vector<spec::TrainSpec>& revisions = {}) {
    const common::role_context context{.role = {protocol::role_kind::data_dispatcher, 0},
                                       .self = {{6}, 0},
                                       .job = test::small_job(folder.path(), overrides, revisions),
                                       .log = std::make_shared<spdlog::logger>("test")};
    dispatcher = system.spawn(data_dispatcher_state::start, context,
                              data_dispatcher_state::arguments{as<protocol::coordinator_actor>(*coordinator),
                                                               journal, [this] { return now; }});
    observer->monitor(dispatcher);
    dispatch();
  }
  template <class Handle>
  static Handle as(const caf::scoped_actor& who) {
    return caf::actor_cast<Handle>(caf::actor_cast<caf::strong_actor_ptr>(who));
  }
  template <class... Messages>
  void tell(Messages... messages) {
    caf::anon_send(dispatcher, std::move(messages)...);
    dispatch();
  }
  /// Handles all messages that are there. The journal's thread is held back meanwhile, and writes
  /// afterwards: what it answers is handled by the next call.
  void dispatch() {
    const auto gate = std::make_shared<std::promise<void>>();
    if (journal)
      journal->write({{"test", "1"}}, [opened = gate->get_future().share()](const auto&) { opened.wait(); });
    while (scheduler.try_run_once()) {
    }
    if (!journal) return;
    const auto written = std::make_shared<std::promise<void>>();
    journal->write({{"test", "2"}}, [written](const auto&) { written->set_value(); });
    gate->set_value();
    written->get_future().get();
  }
  void join(caf::scoped_actor& worker, std::uint32_t index, std::uint64_t incarnation = 1) {
    tell(protocol::worker_available{{index}, {incarnation}}, as<protocol::worker_actor>(worker));
  }
  /// Why it ended; "" while it has not.
  std::string end() {
    dispatch();
    const auto ends = take<caf::down_msg>(observer);
    return ends.empty() ? "" : to_string(ends.front().reason);
  }

  test::temporary_folder folder;
  protocol::time_point now{std::chrono::hours(1)};
  std::shared_ptr<common::job_journal> journal; ///< ends after the actors, which use it
  test::virtual_actors config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::optional<caf::scoped_actor> coordinator{std::in_place, system};
  caf::scoped_actor observer{system};
  caf::scoped_actor worker{system};
  caf::scoped_actor other_worker{system};
  caf::scoped_actor shard{system};
  protocol::local_data_dispatcher_actor dispatcher;

  void TearDown() override {
    coordinator.reset(); // the dispatcher ends with it
    dispatch();
    journal.reset();
  }
};

TEST_F(data_dispatcher_test, a_worker_that_can_take_work_is_leased_all_slots) {
  start();
  join(worker, 0);
  const auto leases = take<protocol::lease>(worker);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].dispatcher, incarnation{6});
  EXPECT_EQ(leases[0].worker, incarnation{1});
  EXPECT_EQ(leases[0].slots, make_slot_range(0, 2));
}

TEST_F(data_dispatcher_test, what_a_lost_worker_had_goes_to_the_other) {
  start();
  join(worker, 0);
  join(other_worker, 1);
  EXPECT_EQ(take<protocol::lease>(worker).back().slots, make_slot_range(0, 1));
  EXPECT_EQ(take<protocol::lease>(other_worker).back().slots, make_slot_range(1, 2));
  tell(protocol::worker_gone{{0}, {1}});
  EXPECT_EQ(take<protocol::lease>(other_worker).back().slots, make_slot_range(0, 2));
  EXPECT_THAT(take<protocol::lease>(worker), IsEmpty());
}

TEST_F(data_dispatcher_test, the_coordinator_is_told_of_the_progress_again_and_again) {
  start();
  protocol::shard_status status;
  status.applied = status.committed = {3};
  status.self = {{1}, 0};
  tell(status);
  for (int i = 0; i < 2; ++i) {
    take<protocol::training_progress>(*coordinator);
    scheduler.advance_time(std::chrono::milliseconds(50));
    dispatch();
    const auto told = take<protocol::training_progress>(*coordinator);
    ASSERT_THAT(told, SizeIs(1));
    ASSERT_THAT(told[0].shards, SizeIs(1));
    EXPECT_EQ(told[0].shards[0].applied, version_id{3});
  }
}

TEST_F(data_dispatcher_test, a_gradient_that_is_no_number_is_told_to_the_coordinator) {
  start();
  protocol::divergence what;
  what.text = "the loss is nan";
  tell(what);
  EXPECT_THAT(take<protocol::divergence>(*coordinator), IsEmpty()) << "what is kept is not known yet";
  protocol::shard_status status;
  status.applied = status.committed = {3};
  status.self = {{1}, 0};
  tell(status);
  take<protocol::training_progress>(*coordinator);
  tell(what);
  EXPECT_THAT(take<protocol::training_progress>(*coordinator), SizeIs(1)) << "what is kept now";
  const auto told = take<protocol::divergence>(*coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].text, "the loss is nan");
  what.timeline = {1};
  tell(what);
  EXPECT_THAT(take<protocol::divergence>(*coordinator), IsEmpty()) << "of another timeline than the shard's";
}

TEST_F(data_dispatcher_test, ends_with_its_coordinator) {
  start();
  EXPECT_EQ(end(), "");
  coordinator.reset();
  dispatch();
  EXPECT_THAT(take<caf::down_msg>(observer), SizeIs(1));
}

// ---- with a journal

class journaling_dispatcher : public data_dispatcher_test {
protected:
  journaling_dispatcher() { journal = common::job_journal::open(folder.path(), {1}).value(); }
  /// PS shard 0 has logged up to `applied`.
  static protocol::shard_status logged(std::uint64_t applied) {
    protocol::shard_status status;
    status.self = {{1}, 0};
    status.sequence = 1;
    status.applied = status.committed = {applied};
    status.durable.history = protocol::first_history();
    status.durable.restorable = {{{0}, {applied}}};
    status.durable.serves_previous = true;
    return status;
  }
  /// Of two PS shards the second is two steps ahead.
  void start_with_one_of_two_workers() {
    start({"cluster.workers=2", "cluster.ps_shards=2"});
    auto ahead = logged(6);
    ahead.shard = {1};
    tell(logged(4));
    tell(ahead);
    join(worker, 0);
  }
  journaled_course journaled() const { return read_course(journal->entries()).value(); }
};

/// Were it told of the revision later, what else the PS shards need could be decided first: a
/// rewind on the way to another.
TEST_F(journaling_dispatcher, a_revision_is_wanted_before_anything_is_decided) {
  start({}, {2, test::small_job(folder.path())->spec.train()});
  tell(protocol::ps_shard_available{{0}, {1}}, as<protocol::ps_shard_actor>(shard));
  tell(logged(5));
  EXPECT_THAT(take<protocol::pin>(shard), ElementsAre(protocol::pin{{0}, {6}, {5}}));
}

/// R14: a worker that has not joined it yet may keep the gradient that a PS shard lacks.
TEST_F(journaling_dispatcher, a_new_start_looks_for_no_gradient_before_every_worker_could_join) {
  start_with_one_of_two_workers();
  tell(protocol::tick{});
  EXPECT_THAT(take<protocol::probe>(worker), IsEmpty());
  join(other_worker, 1);
  tell(protocol::tick{});
  EXPECT_THAT(take<protocol::probe>(worker), SizeIs(1));
  EXPECT_THAT(take<protocol::probe>(other_worker), SizeIs(1));
}

TEST_F(journaling_dispatcher, a_new_start_does_not_wait_for_workers_that_do_not_come) {
  start_with_one_of_two_workers();
  now += std::chrono::milliseconds(1001);
  protocol::worker_status status;
  status.self = {{1}, 0};
  tell(status); // not silent
  tell(protocol::tick{});
  EXPECT_THAT(take<protocol::probe>(worker), SizeIs(1));
}

/// R15: whoever is told of a new timeline finds it in the journal, whatever dies next.
TEST_F(journaling_dispatcher, nobody_is_told_to_go_back_before_that_is_in_the_journal) {
  start({});
  tell(protocol::ps_shard_available{{0}, {1}}, as<protocol::ps_shard_actor>(shard));
  tell(logged(5));
  tell(protocol::poisoned_slot{{{3}, {1}}});
  EXPECT_THAT(journaled().parked, ElementsAre(protocol::parked_slot{{3}, {1}}));
  dispatch();
  EXPECT_THAT(take<protocol::rewind>(shard), IsEmpty());
  EXPECT_EQ(journaled().history.size(), 2U);
  dispatch();
  const auto orders = take<protocol::rewind>(shard);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].version, version_id{3});
  EXPECT_EQ(orders[0].history, journaled().history);
  const auto told = take<protocol::timeline_started>(*coordinator);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].branch, version_id{3});
  EXPECT_EQ(told[0].steps_redone, 2U);
}

TEST_F(journaling_dispatcher, a_course_that_cannot_be_read_ends_it_naming_the_entry) {
  std::promise<void> written;
  journal->write({{"course", "\xff\xff\xff"}}, [&](const auto&) { written.set_value(); });
  written.get_future().get();
  start({});
  EXPECT_THAT(end(), HasSubstr("the entry 'course' of the journal cannot be read"));
}

} // namespace
} // namespace dlrun::data_dispatcher
