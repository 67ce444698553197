/// Where each tensor of a model lies in the one flat vector of floats that workers and PS shards
/// exchange.
#pragma once

#include <cstdint>
#include <dlrun/layer.hpp>
#include <dlrun/shape.hpp>
#include <string>
#include <vector>

namespace dlrun::engine {

/// A tensor in the flat vector. `offset` and `size` count floats; `offset` is a multiple of
/// `tensor_alignment`.
struct tensor_info {
  std::string name; ///< as in PyTorch's state_dict: "<layer>.weight"
  shape extents;
  tensor_kind kind = tensor_kind::parameter;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  float momentum = 0; ///< of a buffer: weight of the newest statistic, 0..1
};

/// A fixed-size piece of a tensor: the unit of placement. Boundaries follow from the model alone.
struct block {
  std::uint32_t tensor = 0; ///< index into tensors()
  std::uint64_t offset = 0; ///< in the flat vector, floats
  std::uint64_t size = 0;   ///< floats, at most `block_size`
  tensor_kind kind = tensor_kind::parameter;
};

/// The tensors of a model, in layer order, and their blocks. The last tensor is `metrics`.
/// Immutable once built.
class parameter_layout {
public:
  static constexpr std::uint64_t tensor_alignment = 16; ///< floats: one cache line
  static constexpr std::uint64_t block_size = 65536;    ///< floats
  static constexpr std::uint64_t metrics_size_min = 16; ///< floats of the metrics tensor
  /// Sums of a metric_set: they travel in control messages, which are small, and the metrics tensor
  /// is one block, on one PS shard.
  static constexpr std::uint64_t metric_floats_max = 4096;

  /// Indices into the metrics tensor. From `first_metric` on are the sums of the model's
  /// metric_set; what is left of the tensor is zero.
  enum metric_index : std::uint8_t { loss_sum = 0, records = 1, first_metric = 2 };

  /// Lays out `tensors` in their order (their offset and size are filled in here) and adds
  /// `metrics` behind them, with room for `metric_floats` (at most `metric_floats_max`) sums.
  explicit parameter_layout(std::vector<tensor_info> tensors, std::uint64_t metric_floats = 0);

  const std::vector<tensor_info>& tensors() const { return tensors_; }
  const std::vector<block>& blocks() const { return blocks_; }
  /// Floats in the flat vector, padding included; a multiple of `tensor_alignment`.
  std::uint64_t flat_size() const { return flat_size_; }
  const tensor_info& metrics() const { return tensors_.back(); }
  /// The tensor of that name, or null.
  const tensor_info* find(const std::string& name) const;

private:
  void append_blocks(std::uint32_t tensor);

  std::vector<tensor_info> tensors_;
  std::vector<block> blocks_;
  std::uint64_t flat_size_ = 0;
};

/// What one PS shard owns: blocks [first_block, last_block) and floats [offset, offset + size) of
/// the flat vector.
struct shard_range {
  std::uint32_t first_block = 0;
  std::uint32_t last_block = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0; ///< the padding behind the blocks included

  bool operator==(const shard_range&) const = default;
};

/// Cuts the blocks into `ps_shards` (at least 1) contiguous runs, balanced by bytes. The ranges
/// tile the flat vector in shard order. No range is empty while there are as many blocks as shards;
/// beyond that the last ones are empty.
std::vector<shard_range> place_blocks(const parameter_layout& layout, std::uint32_t ps_shards);

/// Blocks of trained parameters in `range`.
std::size_t parameter_blocks(const parameter_layout& layout, const shard_range& range);

} // namespace dlrun::engine
