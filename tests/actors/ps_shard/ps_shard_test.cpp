// The shell of a PS shard: messages in, messages out. Everybody else is a mailbox that the test
// looks into; waiting ends with the message that is waited for.
#include "actors/ps_shard/ps_shard.hpp"

#include "tests/actors/played_roles.hpp"
#include "tests/actors/small_job.hpp"
#include "transport/gradient_segment.hpp"

#include <algorithm>
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;
using testing::ElementsAre;
using testing::HasSubstr;

/// One PS shard of a job with steps of two slots of two records; its worker 0 is the test.
class ps_shard_test : public test::played_roles<protocol::ps_shard_actor> {
protected:
  void start(std::vector<std::string> overrides = {"durability.log=off"}) {
    overrides.emplace_back("cluster.placement=threads");
    job = test::small_job(folder.path(), overrides);
    start_role(ps_shard_state::start, protocol::ps_shard_role({0}), {true, ""});
    name_worker(1, 11);
  }
  /// The directory names worker 0, with this incarnation and token.
  void name_worker(std::uint64_t incarnation, std::uint64_t token) {
    name({{protocol::worker_role({0}), {incarnation}, true, {}, token}});
  }
  std::optional<protocol::shard_state> await_version(std::uint64_t version) {
    return await<protocol::shard_state>(
        *worker, [&](const protocol::shard_state& state) { return state.applied.value >= version; });
  }
  void pull(std::uint64_t incarnation = 1, std::uint64_t token = 11) {
    tell(protocol::pull{{0}, {0}, {{incarnation}, token}}, as<protocol::worker_actor>(*worker));
  }

  /// A gradient of worker 0 that is `fill` everywhere, in a buffer that nothing else is written to.
  protocol::push push(std::uint64_t step, std::uint32_t begin, std::uint32_t end, float fill = 0.25F) {
    const auto floats = job->model->layout().flat_size();
    auto& writer = buffers.emplace_back(transport::gradient_writer::create(floats).value());
    std::ranges::fill(writer.begin_write(), fill);
    const auto records = job->sampler.records_in_slot({step}, {begin}) * (end - begin);
    const auto header = writer.seal_as({{0}, {0}, {1}, {step}, {begin}, {end}, records, floats, 0});
    if (!offers) offers = transport::open_offers(job->channel()).value();
    const auto segment = offers->offer(writer.shared()).value();
    protocol::push made;
    made.self = {{1}, 11};
    made.step = {step};
    made.slots = make_slot_range(begin, end);
    made.records = records;
    made.tensor_sequence = header.sequence;
    made.where = {offers->address(), segment.value, writer.shared().size()};
    return made;
  }
  std::optional<caf::scoped_actor>& worker = peer;
  std::shared_ptr<transport::segment_offers> offers;
  std::deque<transport::gradient_writer> buffers;
};

TEST_F(ps_shard_test, a_worker_that_pulls_hears_where_it_stands_and_where_the_parameters_lie) {
  start();
  pull();
  const auto state = await_version(0);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->incarnation, incarnation{3});
  EXPECT_GT(state->parameters.bytes, 0U);
}

TEST_F(ps_shard_test, a_step_that_is_pushed_whole_becomes_a_version) {
  start();
  pull();
  tell(push(0, 0, 2));
  ASSERT_TRUE(await_version(1));
}

TEST_F(ps_shard_test, two_halves_of_a_step_are_summed_and_become_a_version) {
  start();
  pull();
  tell(push(0, 1, 2));
  tell(push(0, 0, 1));
  ASSERT_TRUE(await_version(1));
}

TEST_F(ps_shard_test, the_dispatcher_hears_of_a_first_contribution_and_the_agent_that_it_lives) {
  start();
  pull();
  tell(push(0, 0, 2));
  const auto status = await<protocol::shard_status>(
      *dispatcher, [](const auto& one) { return one.applied.value == 1 && !one.contributions.empty(); });
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->has_metrics);
  EXPECT_EQ(status->ledger.samples_applied, 4U);
  const auto beat = await<protocol::heartbeat>(*agent, [](const auto&) { return true; });
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->role, protocol::ps_shard_role({0}));
}

TEST_F(ps_shard_test, who_does_not_know_the_token_is_not_answered_and_not_applied) {
  start();
  pull(1, 99);
  auto forged = push(0, 0, 2, 9.0F);
  forged.self.token = 99;
  tell(forged);
  pull();
  tell(push(0, 0, 2));
  const auto first = await_version(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->applied, version_id{0}) << "the first answer is to the pull with the token";
  ASSERT_TRUE(await_version(1));
}

TEST_F(ps_shard_test, an_old_start_of_a_worker_is_told_that_it_is_fenced) {
  start();
  pull();
  ASSERT_TRUE(await_version(0));
  tell(protocol::pull{{0}, {0}, {{2}, 22}}, as<protocol::worker_actor>(*worker)); // its successor
  ASSERT_TRUE(await_version(0));
  tell(push(0, 0, 2)); // of the first
  const auto told = await<protocol::fenced>(*worker, [](const auto&) { return true; });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->newest, incarnation{2});
}

TEST_F(ps_shard_test, a_gradient_that_is_no_number_is_reported_and_never_published) {
  start();
  pull();
  tell(push(0, 0, 2, std::numeric_limits<float>::quiet_NaN()));
  const auto told = await<protocol::divergence>(*dispatcher, [](const auto&) { return true; });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step, step_id{0});
  pull();
  EXPECT_EQ(await_version(0)->applied, version_id{0});
}

TEST_F(ps_shard_test, an_old_message_about_a_buffer_that_is_used_again_is_answered_with_the_state) {
  start();
  pull();
  ASSERT_TRUE(await_version(0));
  auto outdated = push(0, 0, 2);
  ++outdated.tensor_sequence;
  tell(outdated);
  EXPECT_EQ(await_version(0)->applied, version_id{0});
}

TEST_F(ps_shard_test, digests_are_those_of_the_version_that_was_asked_for_or_none) {
  start();
  (*observer)
      ->request(at_work, patience, protocol::digest_request{{0}, {0}, 0, 1})
      .receive([](const protocol::digest_reply& reply) { EXPECT_EQ(reply.digests.size(), 32U); },
               [](const caf::error& why) { ADD_FAILURE() << to_string(why); });
  (*observer)
      ->request(at_work, patience, protocol::digest_request{{0}, {4}, 0, 1})
      .receive([](const protocol::digest_reply&) { ADD_FAILURE() << "it stands at version 0"; },
               [](const caf::error& why) { EXPECT_THAT(to_string(why), HasSubstr("another version")); });
}

TEST_F(ps_shard_test, a_newer_start_of_it_ends_it) {
  start();
  name({{protocol::ps_shard_role({0}), {4}, true, {}, 44}});
  EXPECT_THAT(end(), HasSubstr("incarnation 4 of ps_shard 0 exists"));
}

TEST_F(ps_shard_test, going_back_restores_the_version_and_begins_the_timeline) {
  start({"durability.log=every_step"});
  pull();
  tell(push(0, 0, 2));
  ASSERT_TRUE(await_version(1));
  const protocol::history history{{{0}, {0}, 0, {}}, {{1}, {0}, 0, {}}};
  tell(protocol::rewind{{1}, {0}, history});
  const auto state =
      await<protocol::shard_state>(*worker, [](const auto& one) { return one.timeline == timeline_id{1}; });
  ASSERT_TRUE(state);
  EXPECT_EQ(state->applied, version_id{0});
}

TEST_F(ps_shard_test, what_it_logged_is_there_for_its_successor) {
  start({"durability.log=every_step"});
  pull();
  tell(push(0, 0, 2));
  ASSERT_TRUE(
      await<protocol::shard_state>(*worker, [](const auto& one) { return one.committed.value == 1; }));
  caf::anon_send_exit(at_work, caf::exit_reason::user_shutdown);
  EXPECT_THAT(end(), HasSubstr("user_shutdown"));
  start({"durability.log=every_step"});
  pull();
  EXPECT_EQ(await_version(0)->applied, version_id{1});
}

} // namespace
} // namespace dlrun::ps_shard
