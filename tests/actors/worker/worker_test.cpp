// The shell of a worker: messages in, messages out. Everybody else is a mailbox that the test looks
// into; waiting ends with the message that is waited for.
#include "actors/worker/worker.hpp"

#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/actors/played_roles.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"
#include "transport/frozen_parameters.hpp"
#include "transport/gradient_segment.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// Worker 0 of a job with steps of two slots of two records; its one PS shard is the test.
class worker_test : public test::played_roles<protocol::worker_actor> {
protected:
  void start(const protocol::join_reply& reply = {true, ""}) {
    job = job_with_data();
    local->remember(protocol::ps_shard_role({0}), {1}, strong(*shard));
    start_role(worker_state::start, protocol::worker_role({0}), reply);
  }
  std::shared_ptr<const common::job_context> job_with_data() const {
    std::vector<std::uint8_t> classes(10);
    std::iota(classes.begin(), classes.end(), std::uint8_t{0});
    const auto records = folder.write("images", test::idx_bytes({10, 64}, test::counting(640))).string();
    const auto labels = folder.write("labels", test::idx_bytes({10}, classes)).string();
    const auto files = "{records: " + records + ", labels: " + labels + "}";
    auto made = *test::small_job(
        folder.path(), {"cluster.placement=threads", "data.train=" + files, "data.validation=" + files});
    made.data = std::make_shared<const data::job_data>(
        data::decode_job_data(*made.spec.mutable_data(), 1, target_kind::classes).value());
    made.gpus = gpus;
    return std::make_shared<const common::job_context>(std::move(made));
  }
  void name_shard(std::uint64_t start = 1) { name({{protocol::ps_shard_role({0}), {start}, true, here()}}); }
  /// Whose slots are `begin` to `end` from now on.
  void lease(std::uint32_t begin, std::uint32_t end, dlrun::incarnation whose = self.incarnation) {
    tell(protocol::lease{{1}, ++leases, whose, make_slot_range(begin, end)});
  }

  protocol::tensor_location offer(const transport::segment& what) {
    if (!offers) offers = transport::open_offers(job->channel()).value();
    return {offers->address(), offers->offer(what).value().value, what.size()};
  }
  /// Serves a version of the parameters: all of them are `fill`.
  void serve(std::uint64_t version, std::uint64_t timeline = 0, float fill = 0.01F) {
    if (!parameters) {
      parameters = transport::parameter_writer::create(job->shards.at(0).size).value();
      parameters_at = offer(parameters->shared());
    }
    std::ranges::fill(parameters->begin_write({timeline}, {version}), fill);
    parameters->publish();
  }
  protocol::shard_state state(std::uint64_t applied, std::uint64_t start = 1,
                              std::uint64_t timeline = 0) const {
    protocol::shard_state made;
    made.incarnation = {start};
    made.timeline = {timeline};
    made.applied = {applied};
    made.parameters = parameters_at;
    return made;
  }
  /// It is connected, has the lease of a whole step, and knows that the shard stands at version 0.
  void begin(float fill = 0.01F) {
    start();
    name_shard();
    lease(0, 2);
    serve(0, 0, fill);
    tell(state(0));
  }

  std::optional<protocol::push> await_push(std::uint64_t step, std::uint64_t timeline = 0) {
    return await<protocol::push>(*shard, [&](const protocol::push& push) {
      return push.step.value == step && push.timeline.value == timeline;
    });
  }
  std::optional<protocol::pull> await_pull() {
    std::optional<protocol::pull> found;
    (*shard)->receive([&](const protocol::pull& pull, const protocol::worker_actor&) { found = pull; },
                      caf::after(patience) >> [] {});
    return found;
  }
  std::optional<protocol::kept> ask_what_it_keeps() {
    tell(protocol::probe{++probes});
    return await<protocol::kept>(*dispatcher, [&](const auto& one) { return one.probe == probes; });
  }
  /// What a PS shard reads there.
  std::vector<float> read_gradient(const protocol::push& push) const {
    const auto floats = job->model->layout().flat_size();
    const auto client = transport::open_fetches(job->channel()).value();
    std::promise<result<transport::segment>> fetched;
    const auto asked =
        client->fetch(push.where.address, {push.where.segment}, transport::gradient_segment_bytes(floats),
                      transport::gradient_part(0, floats), std::chrono::steady_clock::now() + patience,
                      [&](auto segment) { fetched.set_value(std::move(segment)); });
    EXPECT_TRUE(asked);
    const auto reader = transport::gradient_reader::open(fetched.get_future().get().value(), floats).value();
    const auto values =
        reader.view({push.timeline, push.worker, push.self.incarnation, push.step, push.slots.begin,
                     push.slots.end, push.records, floats, push.tensor_sequence});
    return {values.value().begin(), values.value().end()};
  }
  kernels::cuda::stand_in_module module{{.devices = 2}};
  engine::gpu_set gpus;
  std::optional<caf::scoped_actor>& shard = peer;
  std::optional<transport::parameter_writer> parameters;
  std::shared_ptr<transport::segment_offers> offers;
  protocol::tensor_location parameters_at;
  std::uint64_t leases = 0, probes = 0;
};

TEST_F(worker_test, a_shard_that_the_directory_names_is_asked_where_it_stands) {
  start();
  name_shard();
  const auto pull = await_pull();
  ASSERT_TRUE(pull);
  EXPECT_EQ(pull->worker, worker_id{0});
  EXPECT_EQ(pull->self, self);
}

TEST_F(worker_test, a_shard_that_is_not_there_yet_is_connected_to_when_it_is) {
  start();
  local->forget(protocol::ps_shard_role({0}), {1});
  name_shard();
  ASSERT_TRUE(ask_what_it_keeps()) << "it has tried";
  local->remember(protocol::ps_shard_role({0}), {1}, strong(*shard));
  EXPECT_TRUE(await_pull());
}

/// Where both ends have a process of their own, the connection between them can end alone. Here the
/// mailbox ends, and the same start has another one.
TEST_F(worker_test, a_shard_whose_connection_is_lost_is_connected_to_again_while_that_start_lives_on) {
  start();
  name_shard();
  ASSERT_TRUE(await_pull());
  shard.emplace(system);
  local->remember(protocol::ps_shard_role({0}), {1}, strong(*shard));
  const auto pull = await_pull();
  ASSERT_TRUE(pull);
  EXPECT_EQ(pull->self, self);
}

TEST_F(worker_test, who_is_refused_ends_with_the_reason) {
  start({false, "another build"});
  EXPECT_THAT(end(), HasSubstr("another build"));
}

TEST_F(worker_test, computes_its_lease_and_pushes_the_gradient) {
  begin();
  const auto push = await_push(0);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->slots, make_slot_range(0, 2));
  EXPECT_EQ(push->records, 4U);
  EXPECT_EQ(push->self, self);
  const auto gradient = read_gradient(*push);
  EXPECT_THAT(gradient, Each(testing::Truly([](float one) { return std::isfinite(one); })));
  EXPECT_TRUE(std::ranges::any_of(gradient, [](float one) { return one != 0; }));
}

TEST_F(worker_test, says_that_it_computes_on_the_processor) {
  start();
  EXPECT_EQ(joined_on, "cpu");
}

TEST_F(worker_test, computes_on_its_gpu_and_says_which) {
  gpus = {&module, {1, 0}};
  begin();
  EXPECT_THAT(joined_on, HasSubstr("stand-in (no GPU)"));
  const auto push = await_push(0);
  ASSERT_TRUE(push);
  const auto gradient = read_gradient(*push);
  EXPECT_THAT(gradient, Each(testing::Truly([](float one) { return std::isfinite(one); })));
  EXPECT_TRUE(std::ranges::any_of(gradient, [](float one) { return one != 0; }));
}

TEST_F(worker_test, the_dispatcher_hears_of_its_lease_and_its_work_and_the_agent_that_it_lives) {
  begin();
  const auto status = await<protocol::worker_status>(
      *dispatcher, [](const auto& one) { return one.slots_computed == 2 && one.lease_sequence == 1; });
  ASSERT_TRUE(status);
  EXPECT_EQ(status->lease_of, incarnation{1});
  EXPECT_EQ(status->self, self);
  const auto beat = await<protocol::heartbeat>(*agent, [](const auto&) { return true; });
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->role, protocol::worker_role({0}));
  const auto measured = await<protocol::heartbeat>(
      *agent, [](const auto& one) { return one.slots == 2 && one.slots_per_kilosecond > 0; });
  EXPECT_TRUE(measured);
}

TEST_F(worker_test, a_lease_of_another_start_is_not_computed) {
  start();
  name_shard();
  lease(1, 2, {2});
  lease(0, 1);
  serve(0);
  tell(state(0));
  const auto push = await_push(0);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->slots, make_slot_range(0, 1));
}

TEST_F(worker_test, a_push_is_repeated_until_the_shard_is_past_the_step_and_then_comes_the_next) {
  begin();
  ASSERT_TRUE(await_push(0));
  ASSERT_TRUE(await_push(0)) << "nobody has answered";
  serve(1);
  tell(state(1));
  ASSERT_TRUE(await_push(1));
  EXPECT_THAT(ask_what_it_keeps()->slots, testing::SizeIs(2)) << "step 0 is not committed";
}

TEST_F(worker_test, what_it_keeps_of_an_older_timeline_is_dropped_and_computed_anew) {
  begin();
  ASSERT_TRUE(await_push(0));
  tell(state(0, 1, 1)); // the shard does not serve it yet
  const auto kept = ask_what_it_keeps();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->timeline, timeline_id{1});
  EXPECT_THAT(kept->slots, IsEmpty());
  serve(0, 1);
  ASSERT_TRUE(await_push(0, 1));
}

TEST_F(worker_test, a_state_of_an_older_start_of_the_shard_changes_nothing) {
  start();
  name_shard();
  serve(0);
  tell(state(0, 2));
  tell(state(5, 1));
  lease(0, 2);
  ASSERT_TRUE(await_push(0));
  const auto status =
      await<protocol::worker_status>(*dispatcher, [](const auto& one) { return one.slots_computed == 2; });
  ASSERT_TRUE(status);
  EXPECT_EQ(status->open_step, step_id{0});
}

TEST_F(worker_test, a_gradient_that_is_no_number_and_is_not_applied_is_reported) {
  begin(std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(await_push(0)) << "it is told nevertheless";
  const auto told = await<protocol::divergence>(*dispatcher, [](const auto&) { return true; });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->step, step_id{0});
  EXPECT_TRUE(told->has_slot);
  EXPECT_THAT(told->text, HasSubstr("its 2 records are"));
}

TEST_F(worker_test, evaluates_a_version_from_the_snapshots_of_its_shards) {
  start();
  name_shard();
  ASSERT_TRUE(await_pull());
  tell(protocol::evaluate{{0}, {4}});
  bool is_asked = false;
  (*shard)->receive(
      [&](const protocol::snapshot_request& request, const protocol::worker_actor&) {
        is_asked = request.version == version_id{4} && request.self == self;
      },
      caf::after(patience) >> [] {});
  ASSERT_TRUE(is_asked);
  auto frozen = transport::frozen_parameters_writer::create(job->shards.at(0).size).value();
  std::ranges::fill(frozen.values(), 0.01F);
  frozen.seal_as({0}, {4});
  tell(protocol::snapshot_offer{{0}, {0}, {4}, offer(frozen.shared())});
  const auto made = await<protocol::evaluated>(*dispatcher, [](const auto&) { return true; });
  ASSERT_TRUE(made);
  EXPECT_EQ(made->version, version_id{4});
  EXPECT_EQ(made->records, 10U);
}

TEST_F(worker_test, joins_the_coordinator_that_its_agent_names) {
  start();
  local->remember({protocol::role_kind::coordinator, 0}, {2}, strong(*coordinator));
  (*agent)->receive(
      [&](const protocol::heartbeat& beat) {
        EXPECT_EQ(beat.state, "training");
        return protocol::coordinator_location{{2}, here()};
      },
      caf::after(patience) >> [] { ADD_FAILURE() << "no heartbeat"; });
  answer_join(protocol::worker_role({0}), {true, ""});
}

TEST_F(worker_test, a_newer_start_of_it_ends_it) {
  start();
  name({{protocol::worker_role({0}), {4}, true, here()}});
  EXPECT_THAT(end(), HasSubstr("incarnation 4 of worker 0 exists"));
}

TEST_F(worker_test, a_shard_that_knows_a_newer_start_of_it_ends_it) {
  begin();
  tell(protocol::fenced{protocol::worker_role({1}), {9}}); // not it
  ASSERT_TRUE(await_push(0));
  tell(protocol::fenced{protocol::worker_role({0}), {5}});
  EXPECT_THAT(end(), HasSubstr("incarnation 5 of worker 0 exists"));
}

TEST_F(worker_test, who_is_asked_to_leave_says_so_and_ends_when_its_gradient_is_committed) {
  begin();
  ASSERT_TRUE(await_push(0));
  tell(protocol::leave_job{});
  const auto leaving = [](const protocol::worker_status& status) { return status.leaving; };
  ASSERT_TRUE(await<protocol::worker_status>(*dispatcher, leaving));
  ASSERT_TRUE(await_push(0)) << "nobody has answered";
  serve(1);
  auto past = state(1);
  past.committed = past.applied;
  tell(past);
  EXPECT_EQ(end(), to_string(caf::error{})) << "in order";
}

TEST_F(worker_test, who_is_told_to_stop_finishes_what_it_computes_and_ends) {
  begin();
  caf::anon_send_exit(at_work, caf::exit_reason::user_shutdown);
  EXPECT_THAT(end(), HasSubstr("user_shutdown"));
}

} // namespace
} // namespace dlrun::worker
