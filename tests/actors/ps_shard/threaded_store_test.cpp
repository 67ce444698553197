#include "actors/ps_shard/threaded_store.hpp"

#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/actors/told.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/faulty_file_system.hpp"
#include "tests/transport/second_mapping.hpp"

#include <fcntl.h>
#include <future>
#include <gmock/gmock.h>
#include <map>

namespace dlrun::ps_shard {
namespace {

using protocol::version_set;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A PS shard that trains and stores, and numbers that are restored from there.
class threaded_store_test : public testing::Test {
protected:
  threaded_store_options options(std::uint64_t opener) const {
    return {.job = job,
            .shard = {0},
            .opener = {opener},
            .log = std::make_shared<spdlog::logger>("test"),
            .patience = milliseconds(0),
            .files = files};
  }
  /// Opens, restores, and lets it run; what was open before is closed.
  loaded_standing open(std::uint64_t opener = 1) {
    store.reset();
    store = threaded_store::open(options(opener)).value();
    auto restored = store->restore_newest(numbers).value();
    store->run(events());
    return restored;
  }
  threaded_store_events events() {
    return {.log = {.committed =
                        [this](timeline_id timeline, version_id version) {
                          told.add(fmt::format("committed {} on {}", version, timeline));
                        },
                    .stalled =
                        [this](const auto& why) { told.add(why ? "stalled: " + why->message : "goes on"); },
                    .broken = [this](const error& why) { told.add("broken: " + why.message); }},
            .snapshot_durable =
                [this](timeline_id timeline, version_id version) {
                  ended_on[version.value] = timeline;
                  told.add(fmt::format("snapshot {}", version));
                },
            .snapshot_failed =
                [this](timeline_id timeline, version_id version, const error& why) {
                  ended_on[version.value] = timeline;
                  told.add(fmt::format("no snapshot {}: {}: {}", version, to_string(why.code), why.message));
                }};
  }
  /// Makes steps. @returns their records.
  std::vector<step_to_log> train(int steps, timeline_id timeline = {0}) {
    std::vector<step_to_log> made;
    for (int i = 0; i < steps; ++i) {
      made.push_back(live.train(0, timeline));
      digests[live.version.value] = live.digests();
    }
    return made;
  }
  void append(const std::vector<step_to_log>& steps) {
    for (const auto& step : steps) store->append(step);
  }
  void train_logged(int steps, timeline_id timeline = {0}) {
    append(train(steps, timeline));
    told.wait_for(fmt::format("committed {} on {}", live.version, timeline));
  }
  snapshot_order snapshot_now(timeline_id timeline = {0}) {
    return {live.version, timeline, live.parameters.begin_image(64), live.metrics.sums(), live.ledger};
  }
  void take_snapshot() {
    store->take_snapshot(snapshot_now());
    told.wait_for(fmt::format("snapshot {}", live.version));
  }
  result<transport::frozen_parameters_writer> freeze(std::uint64_t version) {
    std::promise<result<transport::frozen_parameters_writer>> done;
    const auto shape = std::make_shared<shard_parameters>(shard_parameters::create(job, {0}).value());
    store->freeze(shape, {0}, {version}, [&](auto frozen) { done.set_value(std::move(frozen)); });
    return done.get_future().get();
  }
  /// @returns how the truncation went.
  result<void> rewind(const perform_rewind& order) {
    const auto done = std::make_shared<std::promise<result<void>>>();
    store->rewind(order, [done](result<void> truncated) { done->set_value(std::move(truncated)); });
    return done->get_future().get();
  }
  static perform_rewind rewind_to(std::uint64_t version) {
    return {{1}, {version}, {{{0}, {0}, 0, {}}, {{1}, {version}, 0, {}}}};
  }
  /// What was restored has exactly the bits of the training at `version`.
  ::testing::AssertionResult has_bits_of(std::uint64_t version) const {
    if (test::training_shard::digests_of(numbers) == digests.at(version))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "other bits than version " << version;
  }
  std::filesystem::path directory() const { return folder.path() / "ps_shard-0"; }

  test::temporary_folder folder;
  std::shared_ptr<test::faulty_file_system> files = std::make_shared<test::faulty_file_system>(1);
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  test::training_shard live{job};
  shard_parameters numbers = shard_parameters::create(job, {0}).value();
  std::map<std::uint64_t, std::string> digests{{0, live.digests()}};
  std::map<std::uint64_t, timeline_id> ended_on; ///< version of a snapshot that was told: as ordered
  test::told told;
  std::unique_ptr<threaded_store> store; ///< ends before what it uses
};

// ---- norms

/// Rule R12: shards that lag behind may ask for them.
TEST_F(threaded_store_test, where_shards_exchange_norms_the_newest_partials_come_back) {
  job = test::small_job(folder.path(), {"train.clip_norm=0.1"});
  live = test::training_shard{job};
  numbers = shard_parameters::create(job, {0}).value();
  open();
  std::map<step_id, norm_partials> expected;
  for (const auto& step : train(6)) {
    append({step});
    expected[step.step] = common::decode_step_extra(step.extra)->partials;
    EXPECT_EQ(expected[step.step].size(), 2U) << "weight and bias; the metrics are no part of it";
  }
  told.wait_for("committed 6 on 0");
  expected.erase(step_id{0});
  expected.erase(step_id{1});
  EXPECT_EQ(open(2).partials, expected);
}

/// The limit came with `resume --set`.
TEST_F(threaded_store_test, steps_from_before_norms_were_exchanged_have_none) {
  open();
  train_logged(3);
  auto clipped = job->spec.train();
  clipped.set_clip_norm(0.1);
  job = test::small_job(folder.path(), {}, {job->spec.train(), clipped});
  EXPECT_THAT(open(2).partials, IsEmpty());
  EXPECT_TRUE(has_bits_of(3));
}

// ---- opening

TEST_F(threaded_store_test, a_new_one_begins_with_the_initial_parameters) {
  EXPECT_EQ(open(), loaded_standing{});
  EXPECT_FALSE(store->restored_metrics());
  EXPECT_TRUE(has_bits_of(0));
}

TEST_F(threaded_store_test, what_was_logged_is_there_at_the_next_start) {
  open();
  train_logged(5);
  const auto restored = open(2);
  EXPECT_EQ(restored.version, version_id{5});
  EXPECT_TRUE(restored.serves_previous);
  EXPECT_EQ(restored.ledger, live.ledger);
  EXPECT_EQ(restored.restorable, (version_set{{{0}, {5}}}));
  EXPECT_THAT(restored.snapshots, IsEmpty());
  EXPECT_EQ(store->restored_metrics(), live.metrics.sums());
  EXPECT_TRUE(has_bits_of(5));
  train_logged(1);
  EXPECT_EQ(open(3).version, version_id{6});
  EXPECT_TRUE(has_bits_of(6));
}

TEST_F(threaded_store_test, is_refused_while_another_start_has_it) {
  open(1);
  const auto second = threaded_store::open(options(2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::in_use);
}

TEST_F(threaded_store_test, is_refused_to_a_start_that_was_overtaken) {
  open(3);
  store.reset();
  const auto late = threaded_store::open(options(2));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, error_code::fenced);
}

TEST_F(threaded_store_test, takes_the_newest_version_that_is_whole) {
  job = test::small_job(folder.path(), {"durability.log=snapshots"});
  open();
  for (int i = 0; i < 2; ++i) {
    train(3);
    take_snapshot();
  }
  store.reset();
  test::flip_byte(directory() / "snapshots" / "6-0.snap", 1000, 1);
  const auto restored = open(2);
  EXPECT_EQ(restored.version, version_id{3});
  EXPECT_THAT(restored.snapshots, ElementsAre(version_id{3}));
  EXPECT_TRUE(has_bits_of(3));
}

// ---- memory that an earlier start left (R36)

/// In mode `snapshots`: one of version 3, and 7 versions in memory.
class left_memory_test : public threaded_store_test {
protected:
  left_memory_test() {
    job = test::small_job(folder.path(), {"durability.log=snapshots"});
    live = {job, shard_parameters::create_empty(job, {0}, inherited()).value()};
    EXPECT_TRUE(live.parameters.reset({0}));
    open();
    train(3);
    take_snapshot();
    train(4);
  }
  common::retained_memory inherited() const {
    return {base::unique_fd(::fcntl(held.parameters.get(), F_DUPFD_CLOEXEC, 3)),
            base::unique_fd(::fcntl(held.state.get(), F_DUPFD_CLOEXEC, 3))};
  }
  loaded_standing open_after_a_death(std::uint64_t opener) {
    store.reset();
    store = threaded_store::open(options(opener)).value();
    return store->restore_newest(numbers, inherited()).value();
  }

  common::retained_memory held = common::retained_memory::create().value();
};

TEST_F(left_memory_test, is_begun_with_where_it_goes_beyond_the_snapshots) {
  const auto restored = open_after_a_death(2);
  EXPECT_EQ(restored.version, version_id{7});
  EXPECT_TRUE(restored.serves_previous);
  EXPECT_EQ(restored.ledger, live.ledger);
  EXPECT_EQ(restored.restorable, (version_set{{{0}, {0}}, {{3}, {3}}})) << "on disk there is no more";
  EXPECT_EQ(store->opened().newest, version_id{3});
  EXPECT_EQ(store->restored_metrics(), live.metrics.sums());
  EXPECT_TRUE(has_bits_of(7));
}

TEST_F(left_memory_test, is_left_when_all_have_gone_back_meanwhile) {
  ASSERT_TRUE(rewind(rewind_to(3)));
  EXPECT_EQ(open_after_a_death(2).version, version_id{3});
  EXPECT_TRUE(has_bits_of(3));
}

TEST_F(left_memory_test, is_left_when_it_is_not_this_shard_s) {
  held = common::retained_memory::create().value();
  EXPECT_EQ(open_after_a_death(2).version, version_id{3});
  EXPECT_TRUE(has_bits_of(3));
}

// ---- snapshots

TEST_F(threaded_store_test, a_snapshot_waits_for_the_log) {
  open();
  const auto steps = train(3);
  store->take_snapshot(snapshot_now());
  append(steps);
  told.wait_for("snapshot 3");
  const auto lines = told.lines();
  const auto at = [&](const std::string& line) { return std::ranges::find(lines, line) - lines.begin(); };
  EXPECT_LT(at("committed 3 on 0"), at("snapshot 3"));
  EXPECT_THAT(store->snapshots(), ElementsAre(version_id{3}));
}

TEST_F(threaded_store_test, where_only_snapshots_are_kept_they_wait_for_nothing) {
  job = test::small_job(folder.path(), {"durability.log=snapshots"});
  open();
  train(3);
  take_snapshot();
  const auto restored = open(2);
  EXPECT_EQ(restored.version, version_id{3});
  EXPECT_FALSE(restored.serves_previous);
  EXPECT_EQ(restored.restorable, (version_set{{{0}, {0}}, {{3}, {3}}}));
  EXPECT_TRUE(has_bits_of(3));
}

TEST_F(threaded_store_test, a_snapshot_of_a_version_that_is_past_is_made_from_the_log) {
  open();
  train_logged(5);
  store->take_snapshot({{3}, {0}, nullptr, {}, {}});
  told.wait_for("snapshot 3");
  store->drop_below({3});
  train_logged(1);
  EXPECT_EQ(store->restorable(), (version_set{{{0}, {0}}, {{3}, {6}}}));
  EXPECT_EQ(open(2).version, version_id{6});
  EXPECT_EQ(store->restored_metrics(), live.metrics.sums());
  EXPECT_TRUE(has_bits_of(6));
}

TEST_F(threaded_store_test, a_snapshot_that_fails_is_told_and_training_goes_on) {
  open();
  train_logged(2);
  files->fail(test::faulty_file_system::operation::rename, "/snapshots/");
  store->take_snapshot(snapshot_now());
  EXPECT_THAT(told.wait_for("no snapshot 2"), HasSubstr("/snapshots/"));
  files->fail(test::faulty_file_system::operation::rename, "");
  train_logged(1);
  take_snapshot();
  EXPECT_EQ(told.count("broken"), 0);
}

TEST_F(threaded_store_test, ends_while_a_snapshot_waits_for_steps_that_never_come) {
  open();
  train(3);
  store->take_snapshot(snapshot_now());
  store.reset();
  EXPECT_EQ(told.count("snapshot"), 0);
}

TEST_F(threaded_store_test, hands_out_the_parameters_of_a_snapshot_without_what_the_optimizer_keeps) {
  open();
  train_logged(3);
  take_snapshot();
  std::vector<float> trained(live.parameters.range().size);
  const auto reader =
      transport::parameter_reader::open(transport::other_side(live.parameters.shared()), trained.size());
  ASSERT_TRUE(reader->copy({0}, {3}, trained));
  train_logged(2);
  const auto frozen = freeze(3);
  ASSERT_TRUE(frozen) << frozen.error().message;
  const auto values = transport::frozen_parameters(frozen->shared(), trained.size(), {0}, {3});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_TRUE(std::ranges::equal(*values, trained));
}

TEST_F(threaded_store_test, a_damaged_snapshot_is_not_handed_out_but_dropped) {
  open();
  train_logged(3);
  take_snapshot();
  test::flip_byte(directory() / "snapshots" / "3-0.snap", 1000, 1);
  const auto frozen = freeze(3);
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code, error_code::storage_damaged);
  EXPECT_THAT(store->snapshots(), IsEmpty());
  EXPECT_EQ(freeze(3).error().code, error_code::bad_usage) << "there is none";
  EXPECT_EQ(open(2).version, version_id{3}) << "the log has it";
}

// ---- rewinds

TEST_F(threaded_store_test, a_rewind_goes_back_to_the_same_bits_and_is_remembered) {
  open();
  train_logged(5);
  const auto order = rewind_to(2);
  ASSERT_TRUE(rewind(order));
  const auto back = store->load_after_rewind(numbers, order);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->version, version_id{2});
  EXPECT_EQ(back->history, order.history);
  EXPECT_EQ(back->restorable, (version_set{{{0}, {2}}}));
  EXPECT_TRUE(has_bits_of(2));
  const auto restored = open(2);
  EXPECT_EQ(restored.version, version_id{2});
  EXPECT_EQ(restored.history, order.history);
}

TEST_F(threaded_store_test, after_a_rewind_the_log_goes_on_from_there) {
  open();
  train_logged(5);
  ASSERT_TRUE(rewind(rewind_to(2)));
  live = test::training_shard{job};
  train(2);
  train_logged(2, {1});
  EXPECT_EQ(open(2).version, version_id{4});
  EXPECT_TRUE(has_bits_of(4));
}

TEST_F(threaded_store_test, slots_that_are_left_out_are_remembered) {
  open();
  train_logged(3);
  auto order = rewind_to(2);
  order.history.back().revision = 4;
  order.history.back().parked = {{{2}, {1}}, {{7}, {0}}};
  ASSERT_TRUE(rewind(order));
  EXPECT_EQ(open(2).history, order.history);
}

TEST_F(threaded_store_test, a_rewind_voids_the_snapshots_that_were_ordered_before) {
  open();
  train_logged(2);
  train(3);
  store->take_snapshot(snapshot_now()); // waits for steps that are not appended any more
  ASSERT_TRUE(rewind(rewind_to(2)));
  EXPECT_THAT(told.wait_for("no snapshot 5"), HasSubstr("interrupted"));
  EXPECT_EQ(ended_on.at(5), timeline_id{0}) << "not that of now";
  store->take_snapshot({{6}, {0}, live.parameters.begin_image(64), {}, {}}); // late
  told.wait_for("no snapshot 6: interrupted");
  EXPECT_THAT(store->snapshots(), IsEmpty());
}

TEST_F(threaded_store_test, a_rewind_to_what_is_not_there_is_refused_and_changes_nothing) {
  open();
  train_logged(2);
  EXPECT_EQ(rewind(rewind_to(3)).error().code, error_code::bad_usage);
  EXPECT_EQ(open(2).version, version_id{2});
}

// ---- the disk

TEST_F(threaded_store_test, a_full_disk_is_waited_out) {
  open();
  train_logged(2);
  files->set_free_bytes(0);
  append(train(1));
  EXPECT_THAT(told.wait_for("stalled"), HasSubstr(directory().string()));
  files->set_free_bytes(std::nullopt);
  store->drop_below({0}); // other work is followed by another try, so nobody waits for the next one
  told.wait_for("committed 3 on 0");
  told.wait_for("goes on");
  EXPECT_EQ(open(2).version, version_id{3});
  EXPECT_TRUE(has_bits_of(3));
}

/// It asks for room to make room.
TEST_F(threaded_store_test, a_disk_too_full_to_drop_what_is_old_is_waited_out_too) {
  open();
  train_logged(2);
  take_snapshot();
  files->set_free_bytes(0);
  store->drop_below({2});
  append(train(1));
  told.wait_for("stalled");
  EXPECT_EQ(told.count("broken"), 0);
  files->set_free_bytes(std::nullopt);
  store->drop_below({2});
  told.wait_for("committed 3 on 0");
  train_logged(1);
  EXPECT_EQ(store->restorable(), (version_set{{{0}, {0}}, {{2}, {4}}}));
}

TEST_F(threaded_store_test, the_quota_of_the_job_is_divided_among_its_ps_shards) {
  job = test::small_job(folder.path(), {"durability.disk_quota=1kB", "cluster.ps_shards=2"});
  live = test::training_shard{job};
  numbers = shard_parameters::create(job, {0}).value();
  open();
  append(train(1));
  EXPECT_THAT(told.wait_for("stalled"), HasSubstr("may hold 500"));
}

TEST_F(threaded_store_test, tells_which_store_it_opened_and_gets_another_identity_when_that_is_short) {
  open(3);
  train_logged(6);
  const auto made = store->standing();
  EXPECT_EQ(made.host, job->host);
  EXPECT_NE(made.identity, 0U);
  open(4);
  auto found = store->opened();
  EXPECT_EQ(found.store, made);
  EXPECT_EQ(found.opener, incarnation{3});
  EXPECT_EQ(found.newest, version_id{6});
  EXPECT_EQ(found.why_new, "");
  store->renew_identity();
  train_logged(1); // behind it
  const auto renewed = store->standing();
  EXPECT_NE(renewed.identity, made.identity);
  open(5);
  EXPECT_EQ(store->standing(), renewed);
}

} // namespace
} // namespace dlrun::ps_shard
