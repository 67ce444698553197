// What a keeper is sent, as it lies in memory from which that fetches it.
#include "actors/ps_shard/copy_lane.hpp"

#include "actors/common/task_thread.hpp"
#include "base/crc32c.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <condition_variable>
#include <gmock/gmock.h>

namespace dlrun::ps_shard {
namespace {

using testing::HasSubstr;

constexpr auto slot_bytes = protocol::copy_part_bytes_max;

/// The actor: runs what is posted while the test waits.
class played_actor {
public:
  void post(std::function<void()> task) {
    const std::scoped_lock lock{mutex_};
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool run_until(const std::function<bool()>& done) {
    std::unique_lock lock{mutex_};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (!changed_.wait_until(lock, deadline, [&] { return !tasks_.empty(); })) return false;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
    return true;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
};

class copy_lane_test : public test::store_test {
protected:
  void append_record(std::uint64_t step, std::size_t bytes) {
    const auto payload = test::payload_of({step}, {0}, bytes);
    const persistence::log_record record{{step}, {0}, "extra", payload};
    ASSERT_TRUE(store->append(std::span(&record, 1)));
  }
  void begin(std::uint64_t step) {
    const copy_item item{protocol::copy_kind::record, {step}};
    lane.begin({.kind = item.kind, .version = item.version},
               [this, item] { return copy_source::open(*store, item); });
    lane.read_more();
  }
  bool has_part() {
    return actor.run_until([this] { return lane.has_part() || !failure.empty(); }) && lane.has_part();
  }
  static std::string text_of(const ready_part& one) {
    const auto bytes = one.slot->memory.bytes().first(one.part.bytes);
    EXPECT_EQ(base::crc32c(bytes), one.part.crc32c);
    EXPECT_EQ(one.part.where,
              (protocol::tensor_location{one.part.where.address, one.slot->id.value, slot_bytes}));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string whole(std::uint64_t step, std::size_t bytes) {
    const auto payload = test::payload_of({step}, {0}, bytes);
    return std::string{reinterpret_cast<const char*>(payload.data()), payload.size()} + "extra";
  }

  std::unique_ptr<persistence::shard_store> store = persistence::shard_store::open(options()).value();
  std::shared_ptr<transport::segment_offers> offers =
      transport::open_offers({transport::channel_kind::tcp, transport::run_token::random().value()}).value();
  std::shared_ptr<copy_slots> slots = std::make_shared<copy_slots>(offers, 2);
  played_actor actor;
  std::string failure;
  copy_lane lane{slots,
                 {[this](auto task) { reader.run(std::move(task)); },
                  [this](auto task) { actor.post(std::move(task)); }},
                 {[this] { lane.read_more(); }, [this](const error& why) { failure = why.message; }}};
  common::task_thread reader{"test"};
};

TEST_F(copy_lane_test, a_piece_comes_whole_and_in_order_with_no_more_memory_than_there_is) {
  const std::size_t bytes = 4 * slot_bytes + 100;
  append_record(0, bytes);
  begin(0);
  std::string all;
  std::deque<ready_part> held;
  while (lane.is_busy()) {
    ASSERT_TRUE(has_part()) << failure;
    held.push_back(lane.take_part());
    EXPECT_EQ(held.back().part.offset, all.size());
    EXPECT_EQ(held.back().part.content_bytes, bytes);
    EXPECT_EQ(held.back().part.total_bytes, bytes + 5);
    all += text_of(held.back());
    if (held.size() < 2) continue;
    EXPECT_FALSE(slots->has_free());
    held.pop_front(); // it is taken
    lane.read_more();
  }
  EXPECT_EQ(all, whole(0, bytes));
}

TEST_F(copy_lane_test, what_is_dropped_gives_its_memory_back) {
  append_record(0, 3 * slot_bytes);
  append_record(1, 10);
  begin(0);
  ASSERT_TRUE(has_part());
  lane.drop();
  begin(1);
  ASSERT_TRUE(has_part()) << failure;
  const auto next = lane.take_part();
  EXPECT_EQ(text_of(next), whole(1, 10));
  EXPECT_EQ(next.part.version, version_id{1});
  EXPECT_FALSE(lane.is_busy());
}

TEST_F(copy_lane_test, what_cannot_be_read_is_told) {
  begin(7);
  EXPECT_FALSE(has_part());
  EXPECT_THAT(failure, HasSubstr("holds no record of step 7"));
}

/// A part may be on its way before the last one is read; without that the keeper writes nothing.
TEST_F(copy_lane_test, the_last_part_of_a_damaged_record_is_never_given) {
  const std::size_t bytes = slot_bytes + 100;
  auto payload = test::payload_of({0}, {0}, bytes);
  const persistence::log_record record{{0}, {0}, "extra", payload, base::crc32c(payload) ^ 1U};
  ASSERT_TRUE(store->append(std::span(&record, 1)));
  begin(0);
  ASSERT_TRUE(has_part());
  EXPECT_EQ(lane.take_part().part.bytes, slot_bytes);
  lane.read_more();
  EXPECT_FALSE(has_part());
  EXPECT_THAT(failure, HasSubstr("the checksum of the"));
}

TEST_F(copy_lane_test, slots_are_made_once_and_come_back) {
  auto first = slots->lend().value();
  auto second = slots->lend().value();
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(slots->lend().value(), nullptr);
  const auto id = second->id;
  second.reset();
  EXPECT_TRUE(slots->has_free());
  EXPECT_EQ(slots->lend().value()->id, id);
}

} // namespace
} // namespace dlrun::ps_shard
