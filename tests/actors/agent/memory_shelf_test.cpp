#include "actors/agent/memory_shelf.hpp"

#include "transport/parameter_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

void publish(const base::unique_fd& memory, timeline_id timeline, version_id version) {
  auto writer =
      transport::parameter_writer::create_in(base::unique_fd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 3)), 4)
          .value();
  writer.begin_write(timeline, version);
  writer.publish();
}

memory_shelf::memory memory_with(std::uint64_t timeline, std::uint64_t version) {
  auto made = std::make_shared<common::retained_memory>(common::retained_memory::create().value());
  publish(made->parameters, {timeline}, {version});
  publish(made->state, {timeline}, {version});
  return made;
}

memory_shelf::memory empty_memory() {
  return std::make_shared<const common::retained_memory>(common::retained_memory::create().value());
}

TEST(memory_shelf, gives_the_next_start_what_the_last_one_left) {
  memory_shelf shelf;
  EXPECT_EQ(shelf.take(0), nullptr);
  const auto left = memory_with(0, 5);
  EXPECT_EQ(shelf.put(0, left, false), nullptr);
  EXPECT_EQ(shelf.take(0), left);
  EXPECT_EQ(shelf.take(1), nullptr) << "each PS shard for itself";
}

TEST(memory_shelf, keeps_nothing_of_a_start_that_made_no_version) {
  memory_shelf shelf;
  const auto left = memory_with(0, 5), nothing = empty_memory();
  EXPECT_EQ(shelf.put(0, left, false), nullptr);
  EXPECT_EQ(shelf.put(0, nothing, false), nothing);
  EXPECT_EQ(shelf.take(0), left);
}

TEST(memory_shelf, keeps_the_newest_version_of_the_newest_timeline) {
  memory_shelf shelf;
  const auto newest = memory_with(1, 3), older = memory_with(0, 9), further = memory_with(1, 4);
  EXPECT_EQ(shelf.put(0, newest, false), nullptr);
  EXPECT_EQ(shelf.put(0, older, false), older);
  EXPECT_EQ(shelf.take(0), newest) << "a start that was replaced ends later";
  EXPECT_EQ(shelf.put(0, further, false), newest);
  EXPECT_EQ(shelf.take(0), further);
}

TEST(memory_shelf, keeps_nothing_when_memory_had_run_out) {
  memory_shelf shelf;
  const auto before = memory_with(0, 5), killed = memory_with(0, 6);
  EXPECT_EQ(shelf.put(0, before, false), nullptr);
  EXPECT_EQ(shelf.put(0, killed, true), before);
  EXPECT_EQ(shelf.take(0), nullptr);
}

TEST(memory_shelf, drops_what_is_of_no_use_any_more_and_then_takes_what_a_later_start_leaves) {
  memory_shelf shelf;
  const auto left = memory_with(0, 5), lower = memory_with(0, 4);
  EXPECT_EQ(shelf.put(0, left, false), nullptr);
  EXPECT_EQ(shelf.drop(0), left);
  EXPECT_EQ(shelf.drop(0), nullptr);
  EXPECT_EQ(shelf.take(0), nullptr);
  EXPECT_EQ(shelf.put(0, lower, false), nullptr) << "that start had to begin with less";
  EXPECT_EQ(shelf.take(0), lower);
}

/// It may be why they end.
TEST(memory_shelf, does_not_give_for_ever_what_no_start_makes_anything_of) {
  memory_shelf shelf;
  EXPECT_EQ(shelf.put(0, memory_with(0, 5), false), nullptr);
  for (int start = 0; start < 3; ++start) EXPECT_NE(shelf.take(0), nullptr) << "which ends at once";
  EXPECT_EQ(shelf.take(0), nullptr);
}

TEST(memory_shelf, nor_what_starts_take_over_and_end_before_their_first_step) {
  memory_shelf shelf;
  EXPECT_EQ(shelf.put(0, memory_with(0, 5), false), nullptr);
  for (int start = 0; start < 3; ++start) {
    EXPECT_NE(shelf.take(0), nullptr);
    EXPECT_NE(shelf.drop(0), nullptr);
    EXPECT_EQ(shelf.put(0, memory_with(0, 5), false), nullptr);
  }
  EXPECT_EQ(shelf.take(0), nullptr);
  EXPECT_NE(shelf.put(0, memory_with(0, 6), false), nullptr) << "one has made a step";
  EXPECT_NE(shelf.take(0), nullptr);
}

} // namespace
} // namespace dlrun::agent
