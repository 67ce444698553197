// What goes through doorbells says what the messages say that it stands for.
#include "actors/protocol/step_packets.hpp"

#include <gtest/gtest.h>

namespace dlrun::protocol {
namespace {

const hello_packet sender = make_hello({3}, {{7}, 0x1234'5678'9abc'def0}, "dlrun-0123").value();

TEST(step_packets, a_push_is_the_same_on_the_other_side) {
  const push sent{.timeline = {2},
                  .worker = {3},
                  .self = {{7}, 0x1234'5678'9abc'def0},
                  .step = {1'000'000},
                  .slots = {{4}, {8}},
                  .records = 128,
                  .tensor_sequence = 99,
                  .where = {"dlrun-0123", 5, 4096 + 4 * 1000}};
  const auto hello = read_packet<hello_packet>(bytes_of(sender));
  const auto packet = packed(sent);
  const auto read = read_packet<push_packet>(bytes_of(packet));
  ASSERT_TRUE(hello && read);
  const auto got = unpacked(*read, *hello);
  EXPECT_EQ(got.timeline, sent.timeline);
  EXPECT_EQ(got.worker, sent.worker);
  EXPECT_EQ(got.self, sent.self);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.slots, sent.slots);
  EXPECT_EQ(got.records, sent.records);
  EXPECT_EQ(got.tensor_sequence, sent.tensor_sequence);
  EXPECT_EQ(got.where, sent.where);
}

TEST(step_packets, a_state_is_completed_by_what_was_told_before) {
  shard_state known{.shard = {1},
                    .incarnation = {4},
                    .timeline = {2},
                    .applied = {10},
                    .committed = {9},
                    .serves_previous = false,
                    .parameters = {"dlrun-4567", 1, 8192},
                    .parked = {{{5}, {1}}}};
  const auto told = known;
  known.lacks = make_slot_range(2, 3); // it had asked for that
  auto now = told;
  now.applied = {12};
  now.committed = {11};
  now.serves_previous = true;
  const auto packet = packed(now);
  EXPECT_EQ(packet.shard_incarnation, now.incarnation);
  EXPECT_EQ(packet.timeline, now.timeline);
  EXPECT_EQ(unpacked(read_packet<state_packet>(bytes_of(packet)).value(), known), now);
}

TEST(step_packets, what_is_no_such_packet_is_not_read) {
  const auto bytes = bytes_of(sender);
  EXPECT_TRUE(read_packet<hello_packet>(bytes));
  EXPECT_FALSE(read_packet<hello_packet>(bytes.first(bytes.size() - 1)));
  EXPECT_FALSE(read_packet<hello_packet>({}));
  EXPECT_FALSE(read_packet<state_packet>(bytes.first(sizeof(state_packet)))); // another kind
  EXPECT_FALSE(read_packet<push_packet>(bytes.first(sizeof(push_packet))));
}

TEST(step_packets, an_address_must_fit) {
  EXPECT_TRUE(make_hello({0}, {}, std::string(63, 'a')));
  EXPECT_FALSE(make_hello({0}, {}, std::string(64, 'a')));
  auto unended = sender;
  unended.tensor_address.fill('a');
  EXPECT_EQ(tensor_address_of(unended).size(), 64U);
}

TEST(step_packets, a_part_is_of_the_push_that_will_come) {
  push coming;
  coming.step = {7};
  const part_packet sent{.of = packed(coming), .from = 1000};
  const auto read = read_packet<part_packet>(bytes_of(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->from, 1000U);
  EXPECT_EQ(unpacked(read->of, sender).step, step_id{7});
  EXPECT_FALSE(read_packet<push_packet>(bytes_of(sent)));
}

} // namespace
} // namespace dlrun::protocol
