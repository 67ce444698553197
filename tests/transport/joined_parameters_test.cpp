#include "transport/joined_parameters.hpp"

#include "tests/transport/second_mapping.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace dlrun::transport {
namespace {

constexpr timeline_id the_timeline{1};
constexpr std::size_t page_floats = segment_page_bytes / sizeof(float);

/// A PS shard and its parameters as a worker has them.
struct shard {
  shard(std::size_t floats, std::size_t first)
      : writer(parameter_writer::create(floats, first).value())
      , reader(std::make_shared<const parameter_reader>(
            parameter_reader::open(other_side(writer.shared()), floats, first).value())) {}

  void publish(std::uint64_t version, float value) {
    std::ranges::fill(writer.begin_write(the_timeline, version_id{version}), value);
    writer.publish();
  }

  parameter_writer writer;
  std::shared_ptr<const parameter_reader> reader;
};

/// Shards of unequal parts: of whole pages, of parts of them at either end, and of less than one.
struct cluster {
  std::vector<std::size_t> sizes = {2 * page_floats, 3 * page_floats + 16, 32, 2 * page_floats - 16,
                                    page_floats + 5};
  std::vector<shard> shards;
  std::size_t floats = 0;
  joined_parameters joined{sizes};

  cluster() {
    for (const auto size : sizes) {
      shards.emplace_back(size, floats);
      floats += size;
    }
  }
  void publish(std::uint64_t version) {
    for (std::size_t i = 0; i < shards.size(); ++i) shards[i].publish(version, value_of(version, i));
  }
  static float value_of(std::uint64_t version, std::size_t part) {
    return static_cast<float>(10 * version + part);
  }
  result<joined_view> view(std::uint64_t version) {
    joined_parameters::readers readers;
    for (const auto& one : shards) readers.push_back(one.reader);
    return joined.view(the_timeline, version_id{version}, readers);
  }
  void expect_version(const joined_view& view, std::uint64_t version) const {
    ASSERT_EQ(view.values.size(), floats);
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      for (const auto end = at + sizes[i]; at < end; ++at)
        ASSERT_EQ(view.values[at], value_of(version, i)) << at;
  }
};

TEST(joined_parameters, lend_all_parts_of_each_version_side_by_side) {
  cluster c;
  for (std::uint64_t version = 0; version < 6; ++version) {
    c.publish(version);
    const auto view = c.view(version);
    ASSERT_TRUE(view) << view.error().message;
    c.expect_version(*view, version);
    EXPECT_TRUE(view->unchanged());
  }
}

TEST(joined_parameters, keep_a_version_while_the_next_is_made_and_lent) {
  cluster c;
  c.publish(0);
  const auto first = c.view(0).value();
  c.publish(1);
  const auto second = c.view(1).value();
  c.expect_version(first, 0);
  c.expect_version(second, 1);
  EXPECT_TRUE(first.unchanged());
  c.shards[1].writer.begin_write(the_timeline, version_id{2});
  EXPECT_FALSE(first.unchanged()) << "one part of it is written over";
  EXPECT_TRUE(second.unchanged());
}

TEST(joined_parameters, a_version_that_one_part_does_not_serve_is_not_lent) {
  cluster c;
  c.publish(0);
  for (std::size_t i = 0; i < c.shards.size(); ++i)
    if (i != 1) c.shards[i].publish(1, cluster::value_of(1, i));
  const auto view = c.view(1);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, error_code::role_lost);
  c.shards[1].reader = nullptr;
  EXPECT_EQ(c.view(0).error().code, error_code::role_lost) << "not mapped here yet";
}

TEST(joined_parameters, find_a_part_wherever_its_shard_has_it) {
  cluster c;
  c.publish(0);
  c.publish(1);
  c.expect_version(c.view(1).value(), 1);
  // A shard that was replaced has other memory, and may have versions in the other buffer.
  shard replaced(c.sizes[1], c.sizes[0]);
  replaced.publish(1, cluster::value_of(1, 1));
  std::swap(c.shards[1], replaced);
  c.expect_version(c.view(1).value(), 1);
  for (std::uint64_t version = 2; version < 6; ++version) {
    c.publish(version);
    c.expect_version(c.view(version).value(), version);
  }
}

TEST(joined_parameters, outlive_the_memory_of_a_shard_that_has_gone) {
  cluster c;
  c.publish(0);
  const auto view = c.view(0).value();
  c.shards.clear();
  c.expect_version(view, 0);
}

TEST(joined_parameters, of_one_part_are_lent_where_they_lie) {
  shard one(7, 0);
  one.publish(3, 1.5F);
  joined_parameters alone({7});
  const auto view = alone.view(the_timeline, version_id{3}, {one.reader}).value();
  EXPECT_EQ(view.values.data(), one.reader->view(the_timeline, version_id{3})->values.data());
  EXPECT_TRUE(view.unchanged());
}

/// What a driver was told of the memory holds until then.
TEST(joined_parameters, say_before_what_is_mapped_becomes_other_memory) {
  std::vector<std::size_t> said;
  const float* seen = nullptr;
  std::vector<float> read;
  cluster c;
  joined_parameters joined{c.sizes, [&](std::size_t parity) {
                             said.push_back(parity);
                             if (seen != nullptr) read.push_back(*seen);
                           }};
  const auto view = [&](std::uint64_t version) {
    joined_parameters::readers readers;
    for (const auto& one : c.shards) readers.push_back(one.reader);
    return joined.view(the_timeline, version_id{version}, readers).value();
  };
  c.publish(0);
  seen = view(0).values.data();
  const auto mapped = said.size();
  EXPECT_GT(mapped, 0U);
  EXPECT_EQ(std::ranges::count(said, 0U), mapped);
  read.clear();
  view(0);
  EXPECT_EQ(said.size(), mapped) << "nothing has changed";
  c.publish(1);
  view(1);
  EXPECT_EQ(std::ranges::count(said, 1U), mapped);
  c.publish(2); // in the buffers of version 0
  said.clear();
  view(2);
  EXPECT_THAT(said, ::testing::IsEmpty());
  read.clear();
  c.shards[0] = shard(c.sizes[0], 0); // the PS shard has started again
  c.shards[0].publish(2, cluster::value_of(2, 0));
  c.shards[0].publish(3, -1);
  c.publish(4);
  view(4);
  EXPECT_THAT(said, ::testing::Each(0U));
  ASSERT_FALSE(read.empty());
  EXPECT_EQ(read.front(), cluster::value_of(2, 0)) << "the memory of before";
  EXPECT_EQ(*seen, cluster::value_of(4, 0));
}

} // namespace
} // namespace dlrun::transport
