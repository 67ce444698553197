/// y = x W^T + b and its gradients on plain layouts, by oneDNN, or on AVX2 by matrix_product.
#pragma once

#include "kernels/cpu/matrix_product.hpp"
#include "kernels/cpu/onednn.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace dlrun::kernels::cpu {

/// Inner product of fixed widths. x is (batch, in), W (out, in), b (out), y (batch, out), all plain
/// row-major floats: the layout in which a PS shard keeps W is the one this computes with (blocked
/// weights were slower, reorders included).
class inner_product {
public:
  /// `context` must outlive this object.
  inner_product(onednn& context, std::int64_t in, std::int64_t out, bool bias);

  /// y = x W^T + b. `b` is ignored without bias.
  void forward(std::int64_t batch, const float* x, const float* w, const float* b, float* y);

  /// dw = dy^T x and db = column sums of dy, both overwritten; dx = dy W unless `dx` is null.
  void backward(std::int64_t batch, const float* x, const float* w, const float* dy, float* dw, float* db,
                float* dx);

private:
  struct primitives {
    dnnl::primitive forward;
    dnnl::memory::desc w, b; ///< as forward takes them: the same floats in any case
    std::optional<dnnl::inner_product_backward_data> backward_data;
    std::optional<dnnl::inner_product_backward_weights> backward_weights;
    dnnl::memory::desc x, y;
  };
  dnnl::inner_product_forward::primitive_desc describe_forward(const dnnl::memory::desc& x,
                                                               const dnnl::memory::desc& y) const;
  std::optional<primitives> try_matmul(const dnnl::memory::desc& x, const dnnl::memory::desc& y) const;
  primitives make(std::int64_t batch) const;
  void make_backward(primitives& p) const;
  bool is_own(std::int64_t batch) const;
  void own_forward(std::int64_t batch, const float* x, const float* w, const float* b, float* y);
  void own_backward(std::int64_t batch, const float* x, const float* w, const float* dy, float* dw, float* db,
                    float* dx);

  onednn& context_;
  std::int64_t in_, out_;
  bool bias_;
  dnnl::memory::desc w_, b_;
  batch_cache<primitives> cache_;
  matrix_product product_;
  std::vector<double> column_sums_;
};

} // namespace dlrun::kernels::cpu
