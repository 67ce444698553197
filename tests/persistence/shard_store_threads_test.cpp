// Appends, snapshots, reads and looks at the same time.
#include "tests/persistence/store_fixture.hpp"

#include <atomic>
#include <thread>

namespace dlrun::persistence {
namespace {

class shard_store_threads : public test::store_test {};

TEST_F(shard_store_threads, snapshots_and_reads_go_on_beside_appends) {
  constexpr std::uint64_t steps = 600;
  auto store = shard_store::open(options()).value();
  std::atomic<bool> ended{false};
  std::thread snapshots([&] {
    std::uint64_t last = 0;
    while (!ended) {
      const auto version = store->next_step().value;
      if (version <= last) {
        std::this_thread::yield();
        continue;
      }
      const auto made = snapshot(*store, version, 0, 300'000);
      ASSERT_TRUE(made) << made.error().message;
      ASSERT_TRUE(has_snapshot(*store, version, 0, 300'000));
      last = version;
    }
  });
  std::thread reads([&] {
    std::uint64_t step = 0;
    while (!ended) {
      if (step < store->next_step().value) {
        ASSERT_TRUE(holds(*store, step++));
      }
      // One look: between two the other thread ends a snapshot.
      const auto counted = store->counters();
      EXPECT_GE(counted.bytes_on_disk, counted.bytes_in_snapshots);
      EXPECT_FALSE(store->restorable().empty());
      ASSERT_TRUE(store->sync());
    }
  });
  for (std::uint64_t step = 0; step < steps; step += 2) ASSERT_TRUE(append(*store, step, step + 2));
  ended = true;
  snapshots.join();
  reads.join();
  const auto made = store->snapshots();
  EXPECT_FALSE(made.empty());
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_EQ(store->found().snapshots, made);
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_TRUE(holds_all(*store, 0, steps));
}

TEST_F(shard_store_threads, a_rewind_in_the_middle_of_a_snapshot_voids_it) {
  const auto store = shard_store::open(options()).value();
  std::uint64_t timeline = 0;
  std::vector<history_entry> history;
  for (int round = 0; round < 20; ++round) {
    const auto first = store->next_step().value;
    ASSERT_TRUE(append(*store, first, first + 10, timeline));
    result<snapshot_info> made;
    std::thread writer(
        [&, version = first + 8, timeline] { made = snapshot(*store, version, timeline, 200'000); });
    history.push_back({{timeline + 1}, {first + 5}, 0, {}});
    ASSERT_TRUE(store->rewind(history, {first + 5}));
    writer.join();
    ++timeline;
    if (!made) {
      EXPECT_EQ(made.error().code, error_code::fenced) << made.error().message;
    }
    EXPECT_TRUE(store->snapshots().empty()) << "one above the branch is dropped or never counted";
  }
  EXPECT_TRUE(is_empty("/snapshots"));
}

} // namespace
} // namespace dlrun::persistence
