// What a PS shard sends to the keeper of its copy, and what it believes of the answers.
#include "actors/ps_shard/copy_sender.hpp"

#include "tests/actors/protocol/field_bits.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <deque>
#include <gmock/gmock.h>

namespace dlrun::ps_shard {
namespace {

using testing::ElementsAre;

constexpr incarnation shard_start{5};
constexpr incarnation keeper_start{3};

class copy_sender_test : public test::store_test {
protected:
  void SetUp() override {
    ASSERT_TRUE(append(*store, 0, 2));
    sender.serve({[this] {
                    return own_store{.restorable = {{{0}, {2}}}, .logged = store->logged()};
                  },
                  [this](const copy_item& item) { return copy_source::open(*store, item); }});
    sender.begin(keeper_start);
  }
  /// Of a copy that is empty and has taken so many parts.
  static protocol::copy_standing standing(std::uint64_t taken) {
    protocol::copy_standing said{.role = protocol::keeper_role({0}),
                                 .incarnation = keeper_start,
                                 .shard = shard_start,
                                 .stream = 1,
                                 .taken = taken,
                                 .restorable = {{{0}, {0}}}};
    protocol::seal(said);
    return said;
  }
  void run_tasks() {
    while (!tasks.empty()) {
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }

  std::unique_ptr<persistence::shard_store> store = persistence::shard_store::open(options()).value();
  std::deque<std::function<void()>> tasks;
  std::vector<protocol::copy_part> sent;
  std::vector<std::string> warned;
  protocol::time_point now{};
  copy_sender sender{{.role = protocol::ps_shard_role({0}),
                      .incarnation = shard_start,
                      .offers = transport::open_offers(
                                    {transport::channel_kind::tcp, transport::run_token::random().value()})
                                    .value(),
                      .threads = {[this](auto task) { tasks.push_back(std::move(task)); },
                                  [this](auto task) { tasks.push_back(std::move(task)); }},
                      .send = [this](const protocol::copy_part& part) { sent.push_back(part); },
                      .warn = [this](const std::string& why) { warned.push_back(why); },
                      .now = [this] { return now; }}};
};

TEST_F(copy_sender_test, every_part_is_sealed_and_for_the_start_that_it_was_begun_for) {
  ASSERT_TRUE(sender.on_standing(standing(1)));
  sender.pump();
  run_tasks();
  std::vector<protocol::copy_kind> kinds;
  for (const auto& part : sent) {
    EXPECT_TRUE(protocol::is_sealed(part));
    EXPECT_EQ(part.keeper, keeper_start);
    kinds.push_back(part.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(protocol::copy_kind::hello, protocol::copy_kind::record,
                                 protocol::copy_kind::record));
  EXPECT_NE(sent.back().piece_crc32c, 0U);
}

TEST_F(copy_sender_test, knows_whether_bytes_are_on_the_way_and_how_many_were_taken) {
  EXPECT_FALSE(sender.has_bytes_on_the_way()) << "the question that begins a stream has none";
  ASSERT_TRUE(sender.on_standing(standing(1)));
  sender.pump();
  run_tasks();
  EXPECT_TRUE(sender.has_bytes_on_the_way());
  ASSERT_TRUE(sender.on_standing(standing(2)));
  EXPECT_EQ(sender.bytes_taken(), sent[1].bytes);
  EXPECT_TRUE(sender.has_bytes_on_the_way());
  ASSERT_TRUE(sender.on_standing(standing(3)));
  EXPECT_EQ(sender.bytes_taken(), sent[1].bytes + sent[2].bytes);
  EXPECT_FALSE(sender.has_bytes_on_the_way());
}

TEST_F(copy_sender_test, of_an_answer_with_a_flipped_bit_nothing_is_believed) {
  const auto said = standing(1);
  const auto bits = test::bits_of(said);
  for (std::uint64_t bit = 0; bit < bits; ++bit)
    EXPECT_FALSE(sender.on_standing(test::with_flipped(said, bit)));
  EXPECT_EQ(warned.size(), bits);
  sender.pump();
  run_tasks();
  EXPECT_EQ(sent.size(), 1U) << "it does not know where the copy stands";
  EXPECT_TRUE(sender.on_standing(said));
}

/// As one that was lost: the next stream asks again.
TEST_F(copy_sender_test, a_stream_without_an_answer_that_can_be_believed_is_begun_anew) {
  EXPECT_FALSE(sender.on_standing(test::with_flipped(standing(1), 0)));
  EXPECT_FALSE(sender.is_stuck());
  now += copy_stream::silence_max;
  EXPECT_TRUE(sender.is_stuck());
}

TEST_F(copy_sender_test, an_answer_of_another_start_of_the_keeper_is_passed_over) {
  auto said = standing(1);
  said.incarnation = {keeper_start.value + 1};
  protocol::seal(said);
  EXPECT_FALSE(sender.on_standing(said));
}

} // namespace
} // namespace dlrun::ps_shard
