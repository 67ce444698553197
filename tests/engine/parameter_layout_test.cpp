#include "engine/parameter_layout.hpp"

#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

/// A large weight (2.4 blocks), a bias, a buffer.
parameter_layout sample() {
  return parameter_layout({{"a.weight", {200, 784}, tensor_kind::parameter},
                           {"a.bias", {200}, tensor_kind::parameter},
                           {"b.running_mean", {5}, tensor_kind::buffer, 0, 0, 0.1F}});
}

TEST(parameter_layout, every_tensor_starts_at_a_cache_line_and_none_overlap) {
  const auto layout = sample();
  std::uint64_t end = 0;
  for (const auto& tensor : layout.tensors()) {
    EXPECT_EQ(tensor.offset % parameter_layout::tensor_alignment, 0U) << tensor.name;
    EXPECT_GE(tensor.offset, end) << tensor.name;
    end = tensor.offset + tensor.size;
  }
  EXPECT_EQ(layout.flat_size(), 156800U + 208 + 16 + 16);
}

TEST(parameter_layout, metrics_get_as_much_room_as_their_sums_need) {
  for (const auto& [sums, size] : {std::pair{0U, 16U}, {14U, 16U}, {15U, 32U}, {4096U, 4112U}})
    EXPECT_EQ(parameter_layout({}, sums).metrics().size, size) << sums;
  EXPECT_EQ(parameter_layout({}, parameter_layout::metric_floats_max).blocks().size(), 1U)
      << "on one PS shard";
}

TEST(parameter_layout_death, more_sums_than_travel_are_a_broken_invariant) {
  EXPECT_DEATH(parameter_layout({}, parameter_layout::metric_floats_max + 1), "4097");
}

TEST(parameter_layout, the_last_tensor_is_metrics) {
  const auto layout = sample();
  ASSERT_EQ(layout.tensors().size(), 4U);
  EXPECT_EQ(layout.metrics().name, "metrics");
  EXPECT_EQ(layout.metrics().kind, tensor_kind::metric);
  EXPECT_EQ(layout.metrics().size, parameter_layout::metrics_size_min);
  EXPECT_EQ(layout.blocks().back().kind, tensor_kind::metric);
}

TEST(parameter_layout, finds_tensors_by_name) {
  const auto layout = sample();
  ASSERT_NE(layout.find("b.running_mean"), nullptr);
  EXPECT_EQ(layout.find("b.running_mean")->momentum, 0.1F);
  EXPECT_EQ(layout.find("b.running_var"), nullptr);
}

TEST(parameter_layout, blocks_cut_each_tensor_into_pieces_of_one_size_and_a_rest) {
  const auto layout = sample();
  const auto& blocks = layout.blocks();
  ASSERT_EQ(blocks.size(), 3U + 1 + 1 + 1);
  EXPECT_EQ(blocks[0].size, parameter_layout::block_size);
  EXPECT_EQ(blocks[1].size, parameter_layout::block_size);
  EXPECT_EQ(blocks[2].size, 156800 - 2 * parameter_layout::block_size);
  EXPECT_EQ(blocks[2].offset, 2 * parameter_layout::block_size);
  EXPECT_EQ(blocks[3].tensor, 1U);
  EXPECT_EQ(blocks[4].kind, tensor_kind::buffer);
}

void expect_tiles(const parameter_layout& layout, std::uint32_t shards) {
  const auto ranges = place_blocks(layout, shards);
  ASSERT_EQ(ranges.size(), shards);
  std::uint32_t block = 0;
  std::uint64_t offset = 0;
  for (const auto& range : ranges) {
    EXPECT_EQ(range.first_block, block);
    EXPECT_EQ(range.offset, offset);
    EXPECT_GE(range.last_block, range.first_block);
    block = range.last_block;
    offset = range.offset + range.size;
  }
  EXPECT_EQ(block, layout.blocks().size());
  EXPECT_EQ(offset, layout.flat_size());
}

TEST(place_blocks, ranges_tile_the_flat_vector_for_any_number_of_shards) {
  const auto layout = sample();
  for (std::uint32_t shards = 1; shards <= 20; ++shards) expect_tiles(layout, shards);
}

TEST(place_blocks, no_shard_is_empty_while_there_are_blocks_enough) {
  const auto layout = sample();
  for (std::uint32_t shards = 1; shards <= layout.blocks().size(); ++shards)
    for (const auto& range : place_blocks(layout, shards)) EXPECT_GT(range.size, 0U) << shards << " shards";
}

TEST(place_blocks, more_shards_than_blocks_leaves_the_last_ones_empty) {
  const auto layout = sample();
  const auto ranges = place_blocks(layout, 9);
  const auto blocks = static_cast<std::uint32_t>(layout.blocks().size());
  for (std::size_t s = 0; s < ranges.size(); ++s) EXPECT_EQ(ranges[s].size > 0, s < blocks) << "shard " << s;
  EXPECT_EQ(ranges.back(), (shard_range{blocks, blocks, layout.flat_size(), 0}));
}

TEST(place_blocks, shards_differ_by_less_than_two_blocks) {
  std::vector<tensor_info> tensors;
  for (int t = 0; t < 6; ++t)
    tensors.push_back({"t" + std::to_string(t) + ".weight", {512, 784 + t}, tensor_kind::parameter});
  const parameter_layout layout(tensors);
  for (std::uint32_t shards : {2U, 3U, 5U, 7U})
    for (const auto& range : place_blocks(layout, shards)) {
      const auto fair = layout.flat_size() / shards;
      EXPECT_LT(range.size, fair + parameter_layout::block_size) << shards;
      EXPECT_GT(range.size + parameter_layout::block_size, fair) << shards;
    }
}

TEST(place_blocks_DeathTest, without_a_shard_is_a_broken_invariant) {
  EXPECT_DEATH(place_blocks(sample(), 0), "blocks need a PS shard");
}

} // namespace
} // namespace dlrun::engine
