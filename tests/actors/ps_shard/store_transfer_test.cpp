#include "actors/ps_shard/store_transfer.hpp"

#include "proto/shard_snapshot.pb.h"
#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <gmock/gmock.h>
#include <map>

namespace dlrun::ps_shard {
namespace {

using operation = test::faulty_file_system::operation;
using testing::HasSubstr;

/// A PS shard that trains and writes down, and another one that is restored from what was written.
class store_transfer_test : public test::store_test {
protected:
  /// Makes so many steps, each also in the log.
  void train_logged(int steps, std::uint64_t revision = 0, timeline_id timeline = {0},
                    const std::vector<protocol::parked_slot>& parked = {}) {
    for (int i = 0; i < steps; ++i) {
      const auto made = live.train(revision, timeline, parked);
      const persistence::log_record record{made.step, made.timeline, made.extra, std::as_bytes(made.root)};
      ASSERT_TRUE(store->append(std::span(&record, 1)));
      digests[live.version.value] = live.digests();
    }
  }
  /// The same without the log, as with `durability.log: snapshots`.
  void train(int steps) {
    for (int i = 0; i < steps; ++i) live.train();
    digests[live.version.value] = live.digests();
  }
  result<void> snapshot(bool may_commit = true) {
    const auto image = live.parameters.begin_image(1);
    const common::snapshot_extra extra{live.parameters.range(), image->floats(), live.metrics.sums(),
                                       live.ledger};
    auto written =
        write_snapshot(*store, live.version, {0}, *image, extra, [may_commit] { return may_commit; });
    image->abandon();
    return written;
  }
  /// A snapshot of the present version that says `description` of itself.
  void snapshot_with(const records::ShardSnapshot& description) {
    auto writer = store->begin_snapshot(live.version, {0}).value();
    const std::vector<float> numbers(live.parameters.image_floats());
    ASSERT_TRUE(writer.write(std::as_bytes(std::span{numbers})));
    const auto metadata = description.SerializeAsString();
    ASSERT_TRUE(writer.commit(std::as_bytes(std::span{metadata})));
  }
  records::ShardSnapshot description() const {
    records::ShardSnapshot made;
    made.set_format(2);
    made.set_floats(live.parameters.image_floats());
    made.set_first_block(live.parameters.range().first_block);
    made.set_last_block(live.parameters.range().last_block);
    return made;
  }
  void damage_snapshot(std::uint64_t version) const {
    test::flip_byte(directory() + fmt::format("/snapshots/{}-0.snap", version), 1000, 1);
  }
  result<restore_outcome> restore_to(std::uint64_t version, damaged_snapshot damaged = damaged_snapshot::drop,
                                     const protocol::history& history = protocol::first_history()) {
    return restore(*store, numbers, job->sampler, history, {version}, damaged, log);
  }
  std::vector<std::uint64_t> snapshots() const {
    std::vector<std::uint64_t> all;
    for (const auto& one : store->snapshots()) all.push_back(one.version.value);
    return all;
  }
  /// What was restored has exactly the bits of the training at `version`.
  ::testing::AssertionResult has_bits_of(std::uint64_t version) const {
    if (test::training_shard::digests_of(numbers) == digests.at(version))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "other bits than version " << version;
  }

  using versions = std::vector<std::uint64_t>;

  std::shared_ptr<const common::job_context> job = test::small_job(folder.path());
  test::training_shard live{job};
  shard_parameters numbers = shard_parameters::create(job, {0}).value();
  spdlog::logger log{"test"};
  std::unique_ptr<persistence::shard_store> store = persistence::shard_store::open(options()).value();
  std::map<std::uint64_t, std::string> digests{{0, live.digests()}};
};

// ---- coming back

TEST_F(store_transfer_test, an_empty_store_leads_to_the_initial_parameters) {
  const auto made = restore_to(0);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(newest_restorable(*store), version_id{0});
  EXPECT_FALSE(made->has_previous);
  EXPECT_FALSE(made->metrics);
  EXPECT_TRUE(has_bits_of(0));
}

TEST_F(store_transfer_test, a_log_is_replayed_to_the_same_bits) {
  train_logged(5);
  EXPECT_EQ(newest_restorable(*store), version_id{5});
  const auto made = restore_to(5);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->version, version_id{5});
  EXPECT_EQ(made->steps_replayed, 5U);
  EXPECT_TRUE(made->has_previous);
  EXPECT_EQ(made->metrics, live.metrics.sums());
  EXPECT_EQ(made->ledger, live.ledger);
  EXPECT_TRUE(has_bits_of(5));
}

TEST_F(store_transfer_test, a_snapshot_comes_back_with_the_same_bits) {
  train(5);
  ASSERT_TRUE(snapshot());
  const auto made = restore_to(5);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->steps_replayed, 0U);
  EXPECT_FALSE(made->has_previous) << "there is no log that makes it";
  EXPECT_EQ(made->metrics, live.metrics.sums());
  EXPECT_EQ(made->ledger, live.ledger);
  EXPECT_TRUE(has_bits_of(5));
}

TEST_F(store_transfer_test, training_goes_on_from_a_snapshot_with_the_same_bits) {
  train_logged(2);
  ASSERT_TRUE(snapshot());
  train_logged(5);
  ASSERT_TRUE(store->drop_below({2}));
  const auto made = restore_to(7);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->steps_replayed, 5U);
  EXPECT_EQ(made->metrics, live.metrics.sums());
  EXPECT_TRUE(has_bits_of(7));
}

/// Workers that are one version behind are served too (R8), so it is worth a replay.
TEST_F(store_transfer_test, the_version_before_is_made_too_where_the_log_allows_it) {
  train_logged(2);
  ASSERT_TRUE(snapshot());
  train_logged(3);
  ASSERT_TRUE(snapshot());
  const auto made = restore_to(5);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->has_previous);
  EXPECT_EQ(made->steps_replayed, 3U) << "from the newest snapshot below it";
  EXPECT_TRUE(has_bits_of(5));
}

TEST_F(store_transfer_test, any_version_that_the_log_leads_to_can_be_had) {
  train_logged(2);
  ASSERT_TRUE(snapshot());
  train_logged(4);
  for (const std::uint64_t version : {3, 1, 6, 0, 2, 5}) {
    ASSERT_TRUE(restore_to(version)) << version;
    EXPECT_TRUE(has_bits_of(version));
  }
}

TEST_F(store_transfer_test, a_step_is_made_again_by_the_revision_it_was_made_by) {
  auto slower = job->spec.train();
  slower.mutable_optimizer()->mutable_sgd()->set_lr(0.01);
  job = test::small_job(folder.path(), {}, {job->spec.train(), slower});
  live = test::training_shard{job};
  numbers = shard_parameters::create(job, {0}).value();
  train_logged(3, 0);
  train_logged(2, 1);
  ASSERT_TRUE(restore_to(5));
  EXPECT_TRUE(has_bits_of(5));
}

TEST_F(store_transfer_test, a_step_is_made_again_without_the_slots_it_was_made_without) {
  const std::vector<protocol::parked_slot> parked{{{3}, {1}}};
  const protocol::history history{{{0}, {0}, 0, {}}, {{1}, {3}, 0, parked}};
  train_logged(3);
  ASSERT_TRUE(store->rewind(
      std::vector<persistence::history_entry>{{{0}, {0}, 0, {}}, {{1}, {3}, 0, {{{3}, {1}}}}}, {3}));
  train_logged(2, 0, {1}, parked);
  ASSERT_TRUE(restore_to(5, damaged_snapshot::drop, history));
  EXPECT_TRUE(has_bits_of(5));
}

TEST_F(store_transfer_test, a_step_is_clipped_again_by_the_norm_that_is_in_its_record) {
  auto looser = job->spec.train();
  looser.set_clip_norm(0.3);
  job = test::small_job(folder.path(), {"train.clip_norm=0.1"});
  job = test::small_job(folder.path(), {}, {job->spec.train(), looser});
  live = test::training_shard{job};
  numbers = shard_parameters::create(job, {0}).value();
  train_logged(3, 0);
  train_logged(2, 1);
  for (const std::uint64_t version : {5, 2}) {
    ASSERT_TRUE(restore_to(version));
    EXPECT_TRUE(has_bits_of(version));
  }
}

// ---- what is damaged, or of somebody else

TEST_F(store_transfer_test, a_damaged_snapshot_gives_way_to_the_one_before) {
  train_logged(2);
  ASSERT_TRUE(snapshot());
  train_logged(3);
  ASSERT_TRUE(snapshot());
  train_logged(1);
  damage_snapshot(5);
  const auto made = restore_to(6, damaged_snapshot::leave);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->steps_replayed, 4U);
  EXPECT_TRUE(has_bits_of(6));
  EXPECT_EQ(snapshots(), (versions{2, 5})) << "another thread appends to the store";
  ASSERT_TRUE(restore_to(6, damaged_snapshot::drop));
  EXPECT_TRUE(has_bits_of(6));
  EXPECT_EQ(snapshots(), (versions{2}));
}

TEST_F(store_transfer_test, where_nothing_is_whole_the_error_names_it_and_nothing_wrong_is_served) {
  train(2);
  ASSERT_TRUE(snapshot());
  damage_snapshot(2);
  const auto made = restore_to(2);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::storage_damaged);
  EXPECT_THAT(made.error().message, HasSubstr("/snapshots/2-0.snap is damaged at byte"));
  EXPECT_EQ(newest_restorable(*store), version_id{0});
}

TEST_F(store_transfer_test, where_nothing_leads_the_error_names_the_way_out) {
  train(2);
  ASSERT_TRUE(snapshot());
  const auto made = restore_to(1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::storage_damaged);
  EXPECT_THAT(made.error().message, HasSubstr("nothing on disk leads to version 1; 'dlrun resume'"));
}

TEST_F(store_transfer_test, a_snapshot_that_cannot_be_read_just_now_is_kept) {
  train(2);
  ASSERT_TRUE(snapshot());
  files->fail(operation::read, "/snapshots/");
  EXPECT_EQ(restore_to(2).error().code, error_code::system);
  files->fail(operation::read, "");
  ASSERT_TRUE(restore_to(2));
  EXPECT_TRUE(has_bits_of(2));
}

/// A newer dlrun could go on with it: nothing of it may be dropped.
TEST_F(store_transfer_test, a_snapshot_of_another_version_is_refused_naming_both_and_kept) {
  train(2);
  auto newer = description();
  newer.set_format(3);
  snapshot_with(newer);
  const auto made = restore_to(2);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("has format 3, this version reads only 2"));
  EXPECT_EQ(snapshots(), (versions{2}));
}

TEST_F(store_transfer_test, a_snapshot_of_another_model_is_refused_and_kept) {
  train(2);
  auto other = description();
  other.set_last_block(other.last_block() + 1);
  snapshot_with(other);
  const auto made = restore_to(2);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("another model or another number of PS shards"));
  EXPECT_EQ(snapshots(), (versions{2}));
}

TEST_F(store_transfer_test, a_snapshot_with_the_sums_of_other_metrics_is_refused_and_kept) {
  train(2);
  auto other = description();
  other.set_has_metrics(true);
  other.add_sum_bits(7);
  snapshot_with(other);
  const auto made = restore_to(2);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::bad_usage);
  EXPECT_THAT(made.error().message, HasSubstr("has 1 sums of metrics, this job has 2"));
  EXPECT_EQ(snapshots(), (versions{2}));
}

TEST_F(store_transfer_test, a_snapshot_that_does_not_say_what_it_is_counts_as_damaged) {
  train(2);
  auto writer = store->begin_snapshot(live.version, {0}).value();
  const std::string metadata = "\xff\xff\xff";
  ASSERT_TRUE(writer.commit(std::as_bytes(std::span{metadata})));
  EXPECT_EQ(restore_to(2).error().code, error_code::storage_damaged);
  EXPECT_EQ(snapshots(), versions{});
}

TEST_F(store_transfer_test, a_snapshot_with_fewer_numbers_than_it_says_counts_as_damaged) {
  train(2);
  auto writer = store->begin_snapshot(live.version, {0}).value();
  const auto metadata = description().SerializeAsString();
  ASSERT_TRUE(writer.commit(std::as_bytes(std::span{metadata})));
  const auto made = restore_to(2);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::storage_damaged);
  EXPECT_THAT(made.error().message, HasSubstr("the snapshot of version 2 is too short"));
}

TEST_F(store_transfer_test, a_record_of_another_size_is_refused_naming_the_step) {
  ASSERT_TRUE(append(*store, 0, 1)); // not as long as a gradient
  const auto made = restore_to(1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::storage_damaged);
  EXPECT_THAT(made.error().message, HasSubstr("the log record of step 0 has 0 bytes, not"));
}

// ---- writing a snapshot

TEST_F(store_transfer_test, a_snapshot_that_was_overtaken_leaves_nothing_and_can_be_taken_later) {
  train(2);
  EXPECT_EQ(snapshot(false).error().code, error_code::interrupted);
  EXPECT_EQ(snapshots(), versions{});
  EXPECT_TRUE(is_empty("/snapshots"));
  ASSERT_TRUE(snapshot());
  ASSERT_TRUE(restore_to(2));
  EXPECT_TRUE(has_bits_of(2));
}

TEST_F(store_transfer_test, a_snapshot_that_the_disk_has_no_room_for_leaves_nothing_and_can_be_taken_later) {
  train(2);
  files->set_free_bytes(1000);
  const auto written = snapshot();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::disk_full);
  EXPECT_THAT(written.error().message, HasSubstr(directory()));
  EXPECT_TRUE(is_empty("/snapshots"));
  files->set_free_bytes(std::nullopt);
  ASSERT_TRUE(snapshot());
  ASSERT_TRUE(restore_to(2));
  EXPECT_TRUE(has_bits_of(2));
}

TEST_F(store_transfer_test, a_snapshot_is_of_its_version_although_training_goes_on) {
  train(2);
  const auto image = live.parameters.begin_image(64);
  const common::snapshot_extra extra{live.parameters.range(), image->floats(), live.metrics.sums(),
                                     live.ledger};
  train(1);
  ASSERT_TRUE(write_snapshot(*store, {2}, {0}, *image, extra, [] { return true; }));
  ASSERT_TRUE(restore_to(2));
  EXPECT_TRUE(has_bits_of(2));
}

} // namespace
} // namespace dlrun::ps_shard
