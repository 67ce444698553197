// How much disk a copy takes that is slower than its PS shard: what it is sent, and in which order.
#include "actors/ps_shard/copy_stream.hpp"
#include "tests/actors/keeper/mirror_fixture.hpp"

#include <algorithm>
#include <filesystem>

namespace dlrun::keeper {
namespace {

constexpr std::uint64_t steps_a_turn = 5; ///< of the PS shard
constexpr int items_a_turn = 3;           ///< that the copy gets meanwhile
constexpr int turns_a_snapshot = 8;
constexpr int turns = 160;

class copy_room_test : public mirrored_store {
protected:
  copy_room_test() {
    auto made = copy_options();
    made.store.segment_bytes = options().segment_bytes;
    mirror = store_mirror{made};
    stream.begin({});
    stream.take_number();
    EXPECT_TRUE(stream.on_standing(begin(), {}));
  }
  /// As threaded_store::held() says it.
  ps_shard::own_store held() const {
    ps_shard::own_store all;
    all.floor = primary->floor();
    for (const auto& range : primary->restorable()) protocol::insert(all.restorable, range);
    all.logged = primary->logged();
    for (const auto& one : primary->snapshots()) all.snapshots.push_back(one.version);
    return all;
  }
  /// @returns false when there is nothing to send
  bool send_next() {
    const auto item = stream.next(held());
    if (!item) return false;
    std::vector<played_part> parts;
    if (item->kind == copy_kind::floor)
      parts.push_back(stamped({.kind = copy_kind::floor, .version = item->version}));
    else
      parts = parts_of(item->kind, item->version.value);
    for (std::size_t part = 0; part < parts.size(); ++part) stream.take_number();
    const auto said = take(parts);
    EXPECT_EQ(said.failure, "");
    EXPECT_TRUE(stream.on_standing(said, {}));
    if (item->kind == copy_kind::snapshot) stream.on_snapshot_sent();
    return true;
  }
  /// Its steps, a snapshot now and then, and the floor is the one before.
  void train(int turn) {
    const auto first = primary->next_step().value;
    ASSERT_TRUE(append(*primary, first, first + steps_a_turn));
    if (turn % turns_a_snapshot != 0) return;
    ASSERT_TRUE(snapshot(*primary, first + steps_a_turn));
    ASSERT_TRUE(primary->drop_below(std::exchange(newest_, version_id{first + steps_a_turn})));
  }

  /// Of the files that hold records.
  static std::uint64_t bytes_logged(const std::string& store) {
    std::uint64_t all = 0;
    for (const auto& file : std::filesystem::directory_iterator(store + "/segments")) all += file.file_size();
    return all;
  }

  ps_shard::copy_stream stream;

private:
  version_id newest_;
};

TEST_F(copy_room_test, one_that_lags_behind_takes_no_more_than_twice_as_much_as_its_store) {
  std::uint64_t most = 0;
  std::uint64_t most_of_copy = 0;
  for (int turn = 1; turn <= turns; ++turn) {
    ASSERT_NO_FATAL_FAILURE(train(turn));
    for (int item = 0; item < items_a_turn && send_next();) ++item;
    most = std::max(most, bytes_logged(directory()));
    most_of_copy = std::max(most_of_copy, bytes_logged(copy_options().store.directory));
  }
  EXPECT_LE(most_of_copy, 2 * most);
  EXPECT_LT(copy().next_step(), primary->next_step()) << "it lags behind";
}

} // namespace
} // namespace dlrun::keeper
