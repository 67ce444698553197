/// Convolution and max-pool in one, with or without a relu between them.
#pragma once

#include "kernels/cpu/convolution.hpp"
#include "kernels/cpu/max_pool.hpp"

#include <span>
#include <vector>

namespace dlrun::kernels::cpu {

/// max_pool(convolution(x)), a few records at a time: what lies between is several times as large
/// as what goes in and comes out, and in this way it never leaves the processor's second-level
/// cache, nor is it kept for the way back. How many records, depends on the geometry alone, as the
/// sums of the gradients do on it.
class convolution_pool {
public:
  /// `context` must outlive this object. `pool` takes what `convolution` gives. `input_gradient`:
  /// whether backward() will be asked for dx.
  convolution_pool(onednn& context, const convolution_geometry& convolution, const pool_geometry& pool,
                   bool input_gradient);

  /// x, w and b as of convolution::forward(), y as of max_pool().
  void forward(std::int64_t batch, const float* x, const float* w, const float* b, std::span<float> y);

  /// Follows forward() on the same x and w. dw, db and, unless `dx` is null, dx are overwritten. db
  /// is ignored without bias.
  void backward(std::int64_t batch, const float* x, const float* w, std::span<const float> dy, float* dw,
                float* db, float* dx);

private:
  struct slice;
  template <class Visit>
  void each_slice(std::int64_t batch, Visit&& visit) const;
  pool_geometry pool_of(const slice& s);
  std::span<float> between(std::int64_t records);

  convolution_geometry geometry_;
  pool_geometry pool_;
  std::int64_t x_size_, between_size_, y_size_; ///< floats of a record
  std::int64_t records_max_;                    ///< of a slice
  convolution convolution_;
  std::vector<std::int32_t> winner_;     ///< of the whole batch
  dnnl::memory between_;                 ///< the convolution's output of a slice, or its gradient
  std::vector<float> dw_part_, db_part_; ///< of a slice
};

} // namespace dlrun::kernels::cpu
