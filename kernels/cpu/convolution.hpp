/// Convolution in one and two dimensions (cross-correlation, as in deep learning) and its
/// gradients, by oneDNN; on AVX2 the gradient of the weights by weights_gradient.
#pragma once

#include "kernels/cpu/convolution_geometry.hpp"
#include "kernels/cpu/onednn.hpp"
#include "kernels/cpu/weights_gradient.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace dlrun::kernels::cpu {

/// How the caller has y and its gradient.
enum class output_layout : std::uint8_t {
  channels_last, ///< (batch, out_height, out_width, out_channels)
  fastest        ///< (batch, out_channels / block, out_height, out_width, block), see convolution::block()
};

/// Convolution of a fixed geometry. x is (batch, height, width, in_channels), y (batch, out_height,
/// out_width, out_channels), weights (out_channels, in_channels, kernel, kernel), or (..., kernel)
/// where it is flat, and bias (out_channels), plain floats. oneDNN may want weights, and on some
/// instruction sets activations, in another layout: they are then reordered here, into memory that
/// is kept.
class convolution {
public:
  /// `context` must outlive this object. `input_gradient`: whether backward() will be asked for dx.
  convolution(onednn& context, const convolution_geometry& geometry, bool input_gradient,
              output_layout output = output_layout::channels_last);

  /// How many channels of y lie together with output_layout::fastest: all of them, or a part that
  /// suits the instruction set. A function of the geometry and the processor.
  std::int64_t block(std::int64_t batch);

  /// The weights of all passes until the next call: `w` must not change before.
  void set_weights(const float* w);

  void forward(std::int64_t batch, const float* x, const float* b, float* y);

  /// dw, db and, unless `dx` is null, dx are overwritten. db is ignored without bias.
  void backward(std::int64_t batch, const float* x, const float* dy, float* dw, float* db, float* dx);

  /// The two halves of backward(). A transposed convolution is made of them: its forward pass is
  /// backward_data(). backward_weights() needs no weights.
  void backward_weights(std::int64_t batch, const float* x, const float* dy, float* dw, float* db);
  void backward_data(std::int64_t batch, const float* dy, float* dx);

private:
  struct primitives;
  struct layouts;
  /// A tensor in the layout that oneDNN wants, in memory that is kept; none where the caller's has
  /// it.
  struct inside {
    dnnl::memory::desc layout{};
    dnnl::memory memory{};
    std::uint64_t version = 0; ///< of the weights in it
  };
  bool prefers_blocks() const;
  std::optional<primitives> try_layouts(std::int64_t batch, const layouts& layouts) const;
  primitives make(std::int64_t batch) const;
  primitives& for_batch(std::int64_t batch);
  dnnl::memory room(inside& tensor, const dnnl::memory& outside) const;
  dnnl::memory bring_in(inside& tensor, dnnl::memory outside);
  void copy(dnnl::memory from, dnnl::memory to);
  dnnl::memory weights(inside& layout);
  void weights_pass(primitives& p, const float* x, const dnnl::memory& y_gradient, float* dw, float* db);
  void data_pass(primitives& p, const dnnl::memory& y_gradient, float* dx);

  onednn& context_;
  convolution_geometry geometry_;
  bool input_gradient_;
  output_layout output_;
  dnnl::memory::desc w_, b_;
  const float* weights_ = nullptr;
  std::uint64_t version_ = 0; ///< counts set_weights()

  /// A chosen implementation of all three passes, with the layouts that it wants.
  struct primitives {
    dnnl::convolution_forward forward;
    dnnl::convolution_backward_weights backward_weights;
    std::optional<dnnl::convolution_backward_data> backward_data;
    dnnl::memory::desc x, y; ///< as the caller has them
    std::int64_t block;      ///< of the channels of y there
    inside x_inside, y_inside, w_forward, dw, w_data;
  };
  batch_cache<primitives> cache_;
  std::optional<weights_gradient> weights_gradient_; ///< where that is faster than oneDNN's
};

} // namespace dlrun::kernels::cpu
