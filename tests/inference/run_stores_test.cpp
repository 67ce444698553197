#include "inference/run_stores.hpp"

#include "actors/common/history_conversion.hpp"
#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"

#include <gmock/gmock.h>

namespace dlrun::inference {
namespace {

using protocol::version_set;
using testing::HasSubstr;

/// Two PS shards that train and write down, each its own way.
class run_stores_test : public testing::Test {
protected:
  struct live_shard {
    test::training_shard numbers;
    std::unique_ptr<persistence::shard_store> store;
  };

  run_stores_test() {
    for (std::uint32_t shard = 0; shard < 2; ++shard) open_store(shard);
  }
  void open_store(std::uint32_t shard) {
    persistence::shard_store_options options;
    options.directory = common::store_directory(folder.path(), {shard}).string();
    options.opener = {1};
    shards.push_back({test::training_shard{job, {shard}}, persistence::shard_store::open(options).value()});
  }
  void train(std::uint32_t shard, int steps, bool logged = true, timeline_id timeline = {0}) {
    auto& [numbers, store] = shards[shard];
    for (int i = 0; i < steps; ++i) {
      const auto made = numbers.train(0, timeline);
      const persistence::log_record record{made.step, made.timeline, made.extra, std::as_bytes(made.root)};
      if (logged) {
        ASSERT_TRUE(store->append(std::span(&record, 1)));
      }
      remember();
    }
  }
  void remember() {
    std::string both;
    for (auto& shard : shards) both += shard.numbers.digests();
    digests[{shards[0].numbers.version.value, shards[1].numbers.version.value}] = both;
  }
  void snapshot(std::uint32_t shard) {
    auto& [numbers, store] = shards[shard];
    const auto image = numbers.parameters.begin_image(1);
    const common::snapshot_extra extra{numbers.parameters.range(), image->floats(), numbers.metrics.sums(),
                                       numbers.ledger};
    ASSERT_TRUE(ps_shard::write_snapshot(*store, numbers.version, {0}, *image, extra, [] { return true; }));
  }
  /// Nobody trains any more.
  run_stores look() {
    for (auto& shard : shards) shard.store.reset();
    return run_stores::open(folder.path(), 2).value();
  }
  /// With what is needed to make steps again.
  result<rebuilt_version> load(const run_stores& run, version_id version) {
    return run.load({job->model, {job->spec.train()}, job->sampler}, version, damaged);
  }
  /// Without.
  result<rebuilt_version> load_whole(const run_stores& run, version_id version) {
    return run.load({job->model, {job->spec.train()}}, version, damaged);
  }
  const std::string& bits_at(std::uint64_t version) const { return digests.at({version, version}); }

  test::temporary_folder folder;
  std::shared_ptr<const common::job_context> job = test::small_job(folder.path(), {"cluster.ps_shards=2"});
  std::vector<std::string> damaged;
  std::vector<live_shard> shards;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> digests;
};

TEST_F(run_stores_test, puts_the_parts_of_a_logged_version_together) {
  for (int step = 0; step < 5; ++step)
    for (const std::uint32_t shard : {0U, 1U}) train(shard, 1);
  const auto run = look();
  EXPECT_EQ(run.versions(), (version_set{{{0}, {5}}}));
  for (const std::uint64_t version : {5U, 3U, 1U}) {
    EXPECT_FALSE(run.is_whole({version}));
    const auto made = load(run, {version});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->block_digests, bits_at(version));
  }
}

TEST_F(run_stores_test, the_flat_vector_is_that_of_both_shards) {
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 2);
  const auto run = look();
  const auto made = load(run, {2}).value();
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    const auto& range = shards[shard].numbers.parameters.range();
    const auto floats = shards[shard].numbers.parameters.current().first(range.size);
    EXPECT_TRUE(std::ranges::equal(std::span{made.parameters}.subspan(range.offset, range.size), floats));
  }
}

TEST_F(run_stores_test, without_a_log_there_is_what_all_have_a_snapshot_of) {
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 2, false);
  for (const std::uint32_t shard : {0U, 1U}) snapshot(shard);
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 2, false);
  snapshot(0); // the other one died before it could
  const auto run = look();
  EXPECT_EQ(run.versions(), (version_set{{{0}, {0}}, {{2}, {2}}}));
  EXPECT_TRUE(run.is_whole({2}));
  EXPECT_FALSE(run.is_whole({4}));
  const auto made = load_whole(run, {2});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->block_digests, bits_at(2));
}

/// A snapshot needs no sampler: not even the number of records.
TEST_F(run_stores_test, a_whole_version_is_loaded_without_knowing_the_data) {
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 3);
  for (const std::uint32_t shard : {0U, 1U}) snapshot(shard);
  const auto run = look();
  const auto made = load_whole(run, {3});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->block_digests, bits_at(3));
}

TEST_F(run_stores_test, version_0_is_what_training_begins_with) {
  remember();
  const auto run = look();
  EXPECT_TRUE(run.is_whole({0}));
  EXPECT_EQ(load_whole(run, {0})->block_digests, bits_at(0));
}

/// What a shard made on a timeline that was left counts up to where it was left.
TEST_F(run_stores_test, a_shard_that_has_not_gone_back_counts_up_to_the_branch) {
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 6);
  ASSERT_TRUE(shards[0].store->rewind(
      std::vector<persistence::history_entry>{{{0}, {0}, 0, {}}, {{1}, {4}, 0, {{{4}, {0}}}}}, {4}));
  EXPECT_EQ(look().versions(), (version_set{{{0}, {4}}}));
}

TEST_F(run_stores_test, a_damaged_snapshot_is_an_error_and_stays) {
  for (const std::uint32_t shard : {0U, 1U}) train(shard, 2);
  for (const std::uint32_t shard : {0U, 1U}) snapshot(shard);
  const auto run = look();
  const auto file = common::store_directory(folder.path(), {0}) / "snapshots/2-0.snap";
  test::flip_byte(file.string(), 1000, 1);
  EXPECT_EQ(load_whole(run, {2}).error().code, error_code::storage_damaged);
  EXPECT_TRUE(std::filesystem::exists(file));
  const auto made = load(run, {2});
  ASSERT_TRUE(made) << "the log leads there too: " << made.error().message;
  EXPECT_EQ(made->block_digests, bits_at(2));
  EXPECT_THAT(damaged, testing::ElementsAre(HasSubstr(file.string()))) << "told once";
}

TEST_F(run_stores_test, a_store_that_is_missing_or_in_use_is_an_error_that_names_it) {
  const auto used = run_stores::open(folder.path(), 2);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, error_code::in_use);
  shards.clear();
  const auto missing = run_stores::open(folder.path(), 3);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, error_code::bad_usage);
  EXPECT_THAT(missing.error().message, HasSubstr("ps_shard-2"));
}

} // namespace
} // namespace dlrun::inference
