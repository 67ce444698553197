#include "tests/transport/second_mapping.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace dlrun::transport {
namespace {

constexpr timeline_id t1{1};
constexpr timeline_id t2{2};

struct both_sides {
  explicit both_sides(std::size_t floats)
      : writer(parameter_writer::create(floats).value())
      , reader(parameter_reader::open(other_side(writer.shared()), floats).value())
      , got(floats) {}

  void publish(timeline_id timeline, std::uint64_t version, float value) {
    std::ranges::fill(writer.begin_write(timeline, version_id{version}), value);
    writer.publish();
  }
  bool copy(timeline_id timeline, std::uint64_t version) {
    return reader.copy(timeline, version_id{version}, got);
  }

  parameter_writer writer;
  parameter_reader reader;
  std::vector<float> got;
};

TEST(parameter_segment, nothing_is_served_before_the_first_version) {
  both_sides p(7);
  EXPECT_FALSE(p.copy(t1, 0));
  EXPECT_FALSE(p.copy(timeline_id{0}, 0));
}

TEST(parameter_segment, serves_the_newest_version_and_the_one_before) {
  both_sides p(7);
  for (std::uint64_t version = 0; version < 5; ++version) p.publish(t1, version, static_cast<float>(version));
  EXPECT_FALSE(p.copy(t1, 2));
  ASSERT_TRUE(p.copy(t1, 3));
  EXPECT_EQ(p.got, std::vector<float>(7, 3.0F));
  ASSERT_TRUE(p.copy(t1, 4));
  EXPECT_EQ(p.got, std::vector<float>(7, 4.0F));
  EXPECT_FALSE(p.copy(t1, 5));
  EXPECT_EQ(p.writer.current().front(), 4.0F);
}

TEST(parameter_segment, tells_which_versions_are_whole_also_to_who_only_holds_the_memory) {
  const base::unique_fd held(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_TRUE(whole_versions(held.get()).empty());
  EXPECT_TRUE(whole_versions(-1).empty());
  {
    auto writer =
        parameter_writer::create_in(base::unique_fd(::fcntl(held.get(), F_DUPFD_CLOEXEC, 3)), 7).value();
    EXPECT_TRUE(whole_versions(held.get()).empty());
    for (std::uint64_t version = 4; version < 6; ++version) {
      std::ranges::fill(writer.begin_write(t1, {version}), static_cast<float>(version));
      writer.publish();
    }
    EXPECT_EQ(whole_versions(held.get()), (std::vector<whole_version>{{t1, {5}}, {t1, {4}}}));
    writer.begin_write(t1, {6});
  }
  EXPECT_EQ(whole_versions(held.get()), (std::vector<whole_version>{{t1, {5}}}));
  const auto reader = parameter_reader::open(
      segment::adopt(base::unique_fd(::fcntl(held.get(), F_DUPFD_CLOEXEC, 3)), parameter_segment_bytes(7))
          .value(),
      7);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->versions(), whole_versions(held.get()));
  EXPECT_EQ(reader->view(t1, {5})->values.front(), 5.0F);
}

TEST(parameter_segment, the_older_version_goes_when_the_next_is_begun_and_the_newest_stays) {
  both_sides p(7);
  p.publish(t1, 0, 0);
  p.publish(t1, 1, 1);
  auto next = p.writer.begin_write(t1, version_id{2});
  EXPECT_NE(next.data(), p.writer.current().data());
  EXPECT_FALSE(p.copy(t1, 0));
  EXPECT_TRUE(p.copy(t1, 1));
  EXPECT_FALSE(p.copy(t1, 2));
}

TEST(parameter_segment, a_version_that_is_given_up_is_not_served_and_the_one_before_still_is) {
  both_sides p(7);
  p.publish(t1, 0, 0);
  p.publish(t1, 1, 1);
  p.writer.begin_write(t1, version_id{2});
  p.writer.abandon();
  EXPECT_FALSE(p.copy(t1, 0));
  EXPECT_TRUE(p.copy(t1, 1));
  EXPECT_FALSE(p.copy(t1, 2));
  p.publish(t1, 2, 2);
  EXPECT_TRUE(p.copy(t1, 2));
}

TEST(parameter_segment, both_buffers_can_be_set_after_a_restore) {
  both_sides p(7);
  p.publish(t1, 8, 8);
  p.publish(t1, 9, 9);
  p.writer.withdraw_all();
  EXPECT_FALSE(p.copy(t1, 8));
  EXPECT_FALSE(p.copy(t1, 9));
  p.publish(t2, 4, 4);
  p.publish(t2, 5, 5);
  EXPECT_TRUE(p.copy(t2, 4));
  EXPECT_TRUE(p.copy(t2, 5));
}

TEST(parameter_segment, a_version_of_another_timeline_is_not_served) {
  both_sides p(7);
  p.publish(t1, 3, 1);
  EXPECT_FALSE(p.copy(t2, 3));
  EXPECT_TRUE(p.copy(t1, 3));
}

TEST(parameter_segment, a_write_during_the_read_is_noticed) {
  both_sides p(7);
  p.publish(t1, 0, 0);
  p.publish(t1, 1, 1);
  const auto view = p.reader.view(t1, version_id{0});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->values.size(), 7U);
  EXPECT_TRUE(p.reader.unchanged(*view));
  std::ranges::fill(p.writer.begin_write(t1, version_id{2}), 2.0F);
  EXPECT_FALSE(p.reader.unchanged(*view));
  p.writer.publish();
  EXPECT_FALSE(p.reader.unchanged(*view));
  EXPECT_FALSE(p.reader.view(t1, version_id{0}));
}

TEST(parameter_segment, the_same_version_written_anew_during_the_read_is_noticed) {
  both_sides p(7);
  p.publish(t1, 0, 0);
  const auto view = p.reader.view(t1, version_id{0});
  p.writer.withdraw_all();
  p.publish(t1, 0, 5);
  p.publish(t1, 0, 6);
  EXPECT_FALSE(p.reader.unchanged(view.value()));
}

TEST(parameter_segment, a_segment_of_another_shape_is_refused) {
  const auto writer = parameter_writer::create(100).value();
  EXPECT_EQ(parameter_reader::open(other_side(writer.shared()), 101).error().code, error_code::protocol);
  const auto bare = segment::create("zeroes", parameter_segment_bytes(100)).value();
  EXPECT_EQ(parameter_reader::open(other_side(bare), 100).error().code, error_code::protocol);
  EXPECT_EQ(parameter_reader::open(segment(), 0).error().code, error_code::limit_exceeded);
  EXPECT_EQ(parameter_writer::create(0).error().code, error_code::limit_exceeded);
  EXPECT_EQ(parameter_writer::create(std::size_t(-1)).error().code, error_code::limit_exceeded);
}

TEST(parameter_segment, copies_that_overlap_writes_are_whole_or_refused) {
  constexpr std::uint64_t versions = 4'000;
  both_sides p(2'048);
  std::atomic<bool> done{false};
  std::thread writing([&] {
    for (std::uint64_t v = 1; v <= versions; ++v) p.publish(t1, v, static_cast<float>(v));
    done = true;
  });
  std::uint64_t whole = 0;
  for (std::uint64_t v = 1; !done;) {
    if (p.copy(t1, v)) {
      ++whole;
      ASSERT_TRUE(std::ranges::all_of(p.got, [&](float x) { return x == static_cast<float>(v); })) << v;
    }
    v = v % versions + 1;
  }
  writing.join();
  EXPECT_TRUE(p.copy(t1, versions));
}

} // namespace
} // namespace dlrun::transport
