// A worker's doorbells at PS shards: the other end of each is the test's.
#include "actors/worker/shard_doorbells.hpp"

#include "tests/actors/small_job.hpp"
#include "tests/actors/worker/played_channel.hpp"
#include "tests/data/files.hpp"

#include <array>
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr protocol::fence this_start{{3}, 33};

class shard_doorbells_test : public testing::Test {
protected:
  static protocol::shard_state state(std::uint64_t applied, std::uint64_t start = 1,
                                     std::uint64_t timeline = 0) {
    protocol::shard_state made;
    made.incarnation = {start};
    made.timeline = {timeline};
    made.applied = {applied};
    made.parameters.address = "where they lie";
    return made;
  }
  static protocol::push push(std::uint64_t step) {
    protocol::push made;
    made.step = {step};
    return made;
  }
  void answer(result<std::unique_ptr<transport::doorbell>> made) {
    const auto done = std::move(channel.doorbells.front());
    channel.doorbells.pop_front();
    done(std::move(made));
    while (!posted.empty()) {
      const auto task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }
  /// It has a doorbell at start 1 of the shard, whose end is `theirs`.
  void connect() {
    bells.follow(state(0));
    auto [ours, other] = transport::doorbell::pair().value();
    theirs = std::move(other);
    answer(std::move(ours));
  }
  template <class Packet>
  std::optional<Packet> take() const {
    std::array<std::byte, transport::doorbell_packet_bytes_max> into{};
    return protocol::read_packet<Packet>(theirs->take(into).packet);
  }
  /// The shard rings. @returns whether its doorbell is listened to from then on.
  bool ring(const protocol::shard_state& said) {
    const auto packet = protocol::packed(said);
    return listener(protocol::bytes_of(packet));
  }

  test::temporary_folder folder;
  common::role_context context{.role = protocol::worker_role({0}),
                               .self = this_start,
                               .job = test::small_job(folder.path()),
                               .log = std::make_shared<spdlog::logger>("test")};
  test::played_channel channel;
  std::deque<std::function<void()>> posted;
  common::task_thread::listener listener;
  std::vector<protocol::shard_state> heard;
  std::unique_ptr<transport::doorbell> theirs;
  shard_doorbells bells{
      context,
      channel,
      "my address",
      {{[this](const auto& task) { posted.push_back(task); }, [](const auto& task) { task(); }},
       [this](const auto&, const auto& one) {
         listener = one;
         return result<void>{};
       },
       [this](const auto& state) { heard.push_back(state); }}};
};

TEST_F(shard_doorbells_test, says_first_who_it_is_and_then_pushes_through_it) {
  EXPECT_FALSE(bells.ring({0}, push(4))) << "there is none yet";
  connect();
  const auto hello = take<protocol::hello_packet>();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->self, this_start);
  EXPECT_EQ(protocol::tensor_address_of(*hello), "my address");
  EXPECT_TRUE(bells.ring({0}, push(4)));
  const auto pushed = take<protocol::push_packet>();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->step, step_id{4});
}

TEST_F(shard_doorbells_test, tells_of_a_part_only_the_shards_that_it_reaches) {
  connect();
  take<protocol::hello_packet>();
  const auto& range = context.job->shards.at(0);
  bells.tell_part(push(4), range.offset + range.size);
  EXPECT_FALSE(take<protocol::part_packet>());
  bells.tell_part(push(4), range.offset + range.size - 1);
  EXPECT_TRUE(take<protocol::part_packet>());
}

TEST_F(shard_doorbells_test, a_packet_says_where_the_shard_stands_on_the_timeline_of_the_last_message) {
  connect();
  EXPECT_TRUE(ring(state(5)));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0], state(5)) << "with what only the message said";
  EXPECT_TRUE(ring(state(2, 1, 7)));
  EXPECT_THAT(heard, SizeIs(1)) << "the message is on its way";
  bells.follow(state(2, 1, 7));
  EXPECT_TRUE(ring(state(3, 1, 7)));
  EXPECT_THAT(heard, SizeIs(2));
}

TEST_F(shard_doorbells_test, is_left_when_the_other_end_is_gone) {
  connect();
  EXPECT_FALSE(listener(std::nullopt));
  EXPECT_FALSE(bells.ring({0}, push(4)));
}

TEST_F(shard_doorbells_test, is_left_when_it_speaks_for_another_start) {
  connect();
  EXPECT_FALSE(ring(state(5, 9)));
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_FALSE(bells.ring({0}, push(4)));
}

TEST_F(shard_doorbells_test, a_newer_start_of_the_shard_gets_one_of_its_own) {
  connect();
  bells.follow(state(0, 2));
  EXPECT_THAT(channel.doorbells, SizeIs(1));
  EXPECT_FALSE(bells.ring({0}, push(4)));
  EXPECT_FALSE(ring(state(5))) << "of the start before";
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(shard_doorbells_test, one_that_is_refused_is_not_asked_for_again_at_once) {
  bells.follow(state(0));
  answer(fail(error_code::role_lost, "no doorbells"));
  bells.follow(state(1));
  EXPECT_THAT(channel.doorbells, IsEmpty());
  EXPECT_FALSE(bells.ring({0}, push(4)));
}

} // namespace
} // namespace dlrun::worker
