#include "persistence/store_look.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <gmock/gmock.h>
#include <map>

namespace dlrun::persistence {
namespace {

using testing::HasSubstr;

/// A store that is opened for a look: `shard_store_options::read_only`.
class shard_store_look_test : public test::store_test {
protected:
  shard_store_options look() const {
    auto made = options(0);
    made.read_only = true;
    return made;
  }
  /// Every file with its contents; RocksDB's LOCK is touched by whoever asks for it.
  std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory())) {
      if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all[entry.path().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return all;
  }
};

TEST_F(shard_store_look_test, sees_what_was_written_and_changes_nothing) {
  {
    auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 30));
    ASSERT_TRUE(snapshot(*store, 20));
  }
  const auto before = everything();
  {
    const auto store = shard_store::open(look());
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_TRUE(holds_all(**store, 0, 30));
    EXPECT_TRUE(has_snapshot(**store, 20));
    EXPECT_EQ((*store)->restorable(), (ranges{{{0}, {30}}}));
    EXPECT_EQ((*store)->found().last_opener, incarnation{1});
    EXPECT_TRUE((*store)->found().damaged.empty());
  }
  EXPECT_EQ(everything(), before);
}

TEST_F(shard_store_look_test, tells_who_opened_it_its_timeline_and_its_end_without_reading_it) {
  {
    auto store = shard_store::open(options(4)).value();
    ASSERT_TRUE(append(*store, 0, 30));
    EXPECT_EQ(look_at_store(directory()).error().code, error_code::in_use);
  }
  const auto before = everything();
  const auto found = look_at_store(directory());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->opener, incarnation{4});
  EXPECT_EQ(found->timeline, timeline_id{0});
  EXPECT_EQ(found->end, step_id{30});
  EXPECT_EQ(everything(), before);
}

TEST_F(shard_store_look_test, tells_of_a_rewind_and_of_a_snapshot_beyond_the_log) {
  {
    auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 10));
    ASSERT_TRUE(snapshot(*store, 6));
    const history_entry branch{{1}, {6}, 0, {}};
    ASSERT_TRUE(store->rewind(std::span(&branch, 1), {6}));
  }
  const auto found = look_at_store(directory());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->timeline, timeline_id{1});
  EXPECT_EQ(found->end, step_id{6});
}

TEST_F(shard_store_look_test, says_where_there_is_none) {
  EXPECT_EQ(look_at_store(directory()).error().code, error_code::bad_usage);
}

TEST_F(shard_store_look_test, fences_nobody) {
  shard_store::open(options(7)).value().reset();
  ASSERT_TRUE(shard_store::open(look()));
  EXPECT_TRUE(shard_store::open(options(7)));
}

TEST_F(shard_store_look_test, sees_a_rewind) {
  {
    auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 10));
    ASSERT_TRUE(store->rewind(std::vector<history_entry>{{{0}, {0}, 0, {}}, {{1}, {4}, 0, {}}}, {4}));
    ASSERT_TRUE(append(*store, 4, 6, 1));
  }
  const auto store = shard_store::open(look()).value();
  EXPECT_EQ(store->history().back().timeline, timeline_id{1});
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {6}}}));
  EXPECT_TRUE(holds_all(*store, 4, 6, 1));
}

TEST_F(shard_store_look_test, passes_over_damage_and_leaves_it_where_it_is) {
  {
    auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 10));
    ASSERT_TRUE(snapshot(*store, 10));
  }
  const auto file = directory() + "/snapshots/10-0.snap";
  std::filesystem::resize_file(file, 100);
  test::flip_byte(directory() + "/segments/000001.seg", 200, 1);
  const auto before = everything();
  {
    const auto store = shard_store::open(look()).value();
    EXPECT_TRUE(store->snapshots().empty());
    EXPECT_FALSE(store->found().damaged.empty());
    EXPECT_LT(store->restorable().back().last, version_id{10});
  }
  EXPECT_EQ(everything(), before);
}

TEST_F(shard_store_look_test, is_refused_while_somebody_writes) {
  const auto writer = shard_store::open(options()).value();
  const auto seen = shard_store::open(look());
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, error_code::in_use);
}

TEST_F(shard_store_look_test, where_there_is_no_store_none_is_made) {
  const auto seen = shard_store::open(look());
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, error_code::bad_usage);
  EXPECT_THAT(seen.error().message, HasSubstr("there is no store in " + directory()));
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

TEST_F(shard_store_look_test, what_changes_it_is_a_broken_invariant) {
  shard_store::open(options()).value().reset();
  const auto store = shard_store::open(look()).value();
  EXPECT_DEATH(static_cast<void>(append(*store, 0, 1)), "opened for a look");
}

} // namespace
} // namespace dlrun::persistence
