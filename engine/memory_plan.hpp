/// Where the activations of a network and their gradients lie: in one piece of memory that they
/// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/operation.hpp>
#include <span>
#include <vector>

namespace dlrun::engine {

/// A stage of a network as its plan sees it.
struct planned_stage {
  /// Positions of the stages whose outputs it reads, all before its own; `reads_records` for the
  /// network's input. One may occur twice.
  std::vector<std::int32_t> reads;
  std::size_t output_floats = 0; ///< of a record
  bool computes = true;          ///< false: nothing reads it, and it has no output
  bool learns = false;           ///< takes part in the way back
  memory_use use;

  static constexpr std::int32_t reads_records = -1;
};

/// Offsets of everything that stages hand to each other in one pass over a network: outputs on the
/// way forward, gradients of outputs on the way back. Two of them share memory where the last use
/// of one comes before the first of the other, or where a stage works in place. Immutable.
///
/// All is in floats of one record, or in what else activations are: of a batch, each offset and
/// size is so many times as large. They are multiples of 16, so that all floats lie at 64-byte
/// boundaries if the memory begins at one.
///
/// Offsets are chosen greedily, the largest first, each at the lowest place that is free for as
/// long as it is used: "Greedy by Size for Offset Calculation" of Pisarchyk and Lee, Efficient
/// Memory Management for Deep Neural Net Inference, 2020.
class memory_plan {
public:
  /// What a pass is made of.
  enum class pass_kind : std::uint8_t { forward, forward_backward };

  /// `record_floats`: of the network's input where that is to be in this memory too, else 0. The
  /// last stage gives the outputs, which are kept until the loss is computed.
  memory_plan(std::span<const planned_stage> stages, pass_kind kind, std::size_t record_floats);

  /// Floats of all the memory, for one record.
  std::size_t floats() const { return floats_; }
  std::size_t records() const { return offset(records_); }
  std::size_t output(std::size_t stage) const { return offset(outputs_[stage]); }
  /// Of the gradient of a stage's output. The stage must learn.
  std::size_t output_gradient(std::size_t stage) const { return offset(gradients_[stage]); }
  /// Where stage `reader` writes the gradient of its input number `input`, of a stage that learns:
  /// in place of the gradient of that stage's output if `is_first_part`, else beside it, to be
  /// added.
  std::size_t part(std::size_t reader, std::size_t input) const {
    return offset(parts_[reader][input].piece);
  }
  bool is_first_part(std::size_t reader, std::size_t input) const { return parts_[reader][input].is_first; }

private:
  using moment = std::uint32_t;
  /// Something in memory from one moment to another, both included.
  struct piece {
    std::size_t floats;
    moment first, last;
    std::size_t offset = 0;
  };
  static constexpr std::size_t none = ~std::size_t{0};
  struct gradient_part {
    std::size_t piece = none;
    bool is_first = false;
  };

  std::size_t add(std::size_t floats, moment first, moment last);
  std::size_t offset(std::size_t piece) const;
  void plan_forward(std::span<const planned_stage> stages, pass_kind kind, std::size_t record_floats);
  void plan_backward(std::span<const planned_stage> stages);
  void plan_parts(std::span<const planned_stage> stages, std::size_t reader);
  void place();

  std::vector<piece> pieces_;
  std::size_t records_ = none;
  std::vector<std::size_t> outputs_, gradients_;  ///< numbers of pieces, by stage
  std::vector<std::vector<gradient_part>> parts_; ///< by stage and input
  std::size_t floats_ = 0;
};

} // namespace dlrun::engine
