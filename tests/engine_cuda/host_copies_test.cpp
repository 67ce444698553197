// Which copies between host and device take a detour, and that all bring what they should.
#include "engine/cuda/host_copies.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace dlrun::engine {
namespace {

using kernels::cuda::host_access;
using kernels::cuda::lane;
using kernels::cuda::stand_in_device;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t refuses_read = 1, refuses_write = 2;

/// More than a part of the copy in between, and no multiple of one.
constexpr std::size_t count = (std::size_t{2} << 20) + 5, bytes = count * sizeof(float);

struct copying {
  explicit copying(std::int64_t refuses = 0)
      : device{{.faults = {.refuses_host_memory = refuses}}}
      , there{static_cast<float*>(device.allocate(bytes).value())} {
    std::iota(from.begin(), from.end(), 1.0F);
  }
  /// There and back, with memory that is known or not.
  void expect_round_trip() {
    std::ranges::fill(to, 0.0F);
    ASSERT_TRUE(copies.upload(from, there));
    ASSERT_TRUE(copies.download(lane::compute, there, to));
    ASSERT_EQ(to, from);
  }
  std::shared_ptr<void> announce_from() {
    return copies.announce(std::as_bytes(std::span{from}), host_access::read);
  }
  std::shared_ptr<void> announce_to() {
    return copies.announce(std::as_bytes(std::span{to}), host_access::write);
  }

  stand_in_device device;
  float* there;
  std::vector<float> from = std::vector<float>(count), to = std::vector<float>(count);
  host_copies copies{device};
};

TEST(host_copies, of_memory_that_nobody_announced_go_by_memory_that_the_device_reaches) {
  copying c;
  c.expect_round_trip();
  EXPECT_EQ(c.device.counts().detour_bytes, 0);
  EXPECT_THAT(c.copies.take_remarks(), IsEmpty());
}

/// The stand-in reads an upload as late as it may: here the host's memory itself.
TEST(host_copies, of_memory_that_the_device_knows_are_direct) {
  copying c;
  const auto read = c.announce_from(), written = c.announce_to();
  ASSERT_TRUE(read && written);
  ASSERT_TRUE(c.copies.upload(c.from, c.there));
  c.from[7] = -7;
  ASSERT_TRUE(c.copies.download(lane::compute, c.there, c.to));
  EXPECT_EQ(c.to[7], -7);
  EXPECT_EQ(c.device.counts().detour_bytes, 0);
  EXPECT_THAT(c.copies.take_remarks(), ElementsAre(HasSubstr("copies parameters where the host has them"),
                                                   HasSubstr("copies gradients where the host has them")));
  c.expect_round_trip();
  EXPECT_THAT(c.copies.take_remarks(), IsEmpty()) << "once";
}

TEST(host_copies, of_memory_that_the_device_refuses_take_the_other_way_and_it_is_not_asked_again) {
  for (const auto refuses : {refuses_read, refuses_write, refuses_read | refuses_write}) {
    copying c{refuses};
    const auto read = c.announce_from(), written = c.announce_to();
    EXPECT_EQ(read == nullptr, (refuses & refuses_read) != 0);
    EXPECT_EQ(written == nullptr, (refuses & refuses_write) != 0);
    c.expect_round_trip();
    EXPECT_EQ(c.device.counts().detour_bytes, 0);
    EXPECT_THAT(
        c.copies.take_remarks(),
        ElementsAre(HasSubstr((refuses & refuses_read) != 0 ? "parameters between host and GPU, since the "
                                                              "driver refuses their memory: it takes no such"
                                                            : "parameters where"),
                    HasSubstr((refuses & refuses_write) != 0 ? "gradients between" : "gradients where")));
    EXPECT_EQ(c.announce_from() == nullptr, true) << "refused, or known already";
    ASSERT_TRUE(c.copies.upload(c.from, c.there));
    ASSERT_TRUE(c.device.finish(lane::compute));
  }
}

/// What is mapped there then is not what the driver has in mind.
TEST(host_copies, of_memory_whose_announcement_is_taken_back_are_not_direct_any_more) {
  copying c;
  auto read = c.announce_from(), written = c.announce_to();
  std::thread{[&] { read.reset(); }}.join();
  written.reset();
  ASSERT_TRUE(c.copies.upload(c.from, c.there));
  c.from[7] = -7;
  ASSERT_TRUE(c.copies.download(lane::compute, c.there, c.to));
  EXPECT_EQ(c.to[7], 8);
  EXPECT_EQ(c.device.counts().detour_bytes, 0);
  EXPECT_NE(c.announce_from(), nullptr) << "again";
}

TEST(host_copies, outlived_by_an_announcement) {
  std::shared_ptr<void> read;
  {
    copying c;
    read = c.announce_from();
  }
  read.reset();
}

TEST(host_copies, of_a_part_of_what_is_known_are_direct_and_of_more_are_not) {
  copying c;
  const auto read = c.copies.announce(std::as_bytes(std::span{c.from}.subspan(100, 100)), host_access::read);
  ASSERT_TRUE(c.copies.upload(std::span{c.from}.subspan(150, 50), c.there));
  c.from[150] = -1;
  ASSERT_TRUE(c.copies.download(lane::compute, c.there, std::span{c.to}.first(1)));
  EXPECT_EQ(c.to[0], -1);
  for (const auto begin : {99U, 151U}) {
    ASSERT_TRUE(c.copies.upload(std::span{c.from}.subspan(begin, 50), c.there));
    c.from[begin] = -2;
    ASSERT_TRUE(c.copies.download(lane::compute, c.there, std::span{c.to}.first(1)));
    EXPECT_EQ(c.to[0], static_cast<float>(begin + 1)) << begin;
  }
  EXPECT_EQ(c.device.counts().detour_bytes, 0);
}

/// The memory in between is written again only when the lane has read it.
TEST(host_copies, may_follow_each_other_before_the_lane_has_done_them) {
  copying c;
  float* const other = static_cast<float*>(c.device.allocate(bytes).value());
  const std::vector<float> ones(count, 1.0F);
  ASSERT_TRUE(c.copies.upload(c.from, c.there));
  ASSERT_TRUE(c.copies.upload(ones, other));
  ASSERT_TRUE(c.copies.download(lane::compute, c.there, c.to));
  EXPECT_EQ(c.to, c.from);
}

TEST(host_copies, of_nothing_say_whether_the_device_has_failed) {
  stand_in_device device{{.faults = {.fails_at_step = 1}}};
  host_copies copies{device};
  auto* const to = static_cast<float*>(device.allocate(sizeof(float)).value());
  EXPECT_TRUE(copies.download(lane::compute, to, {}));
  device.run(lane::compute, kernels::cuda::fill{to, 1, 1.0F});
  EXPECT_FALSE(copies.download(lane::compute, to, {}));
}

} // namespace
} // namespace dlrun::engine
