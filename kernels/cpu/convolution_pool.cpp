#include "kernels/cpu/convolution_pool.hpp"

#include "kernels/cpu/reduce.hpp"

#include <algorithm>

namespace dlrun::kernels::cpu {
namespace {

// Fits the second-level cache of most servers (1 MiB and more), with room for x, y and the weights.
constexpr std::int64_t between_floats_max = 800 * 1024 / 4;

dnnl::memory floats(const onednn& context, std::int64_t count) {
  return {{{count}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x}, context.engine};
}

} // namespace

/// Records [first, first + records) of a batch. All slices of a batch but the last are equal.
struct convolution_pool::slice {
  std::int64_t first, records;
};

convolution_pool::convolution_pool(onednn& context, const convolution_geometry& convolution,
                                   const pool_geometry& pool, bool input_gradient)
    : geometry_(convolution)
    , pool_(pool)
    , x_size_(convolution.in_channels * convolution.height * convolution.width)
    , between_size_(pool.channels * pool.height * pool.width)
    , y_size_(pool.channels * pool.out_height * pool.out_width)
    , records_max_(std::max<std::int64_t>(1, between_floats_max / between_size_))
    , convolution_(context, convolution, input_gradient, output_layout::fastest)
    , between_(floats(context, records_max_ * between_size_))
    , dw_part_(static_cast<std::size_t>(convolution.out_channels * convolution.in_channels *
                                        convolution.kernel_height() * convolution.kernel))
    , db_part_(static_cast<std::size_t>(convolution.out_channels)) {}

template <class Visit>
void convolution_pool::each_slice(std::int64_t batch, Visit&& visit) const {
  const std::int64_t slices = (batch + records_max_ - 1) / records_max_;
  const std::int64_t records = (batch + slices - 1) / slices;
  for (std::int64_t first = 0; first < batch; first += records)
    visit(slice{first, std::min(records, batch - first)});
}

std::span<float> convolution_pool::between(std::int64_t records) {
  return {static_cast<float*>(between_.get_data_handle()), static_cast<std::size_t>(records * between_size_)};
}

/// The pool on what the convolution gives of the slice, as it lies there.
pool_geometry convolution_pool::pool_of(const slice& s) {
  auto pool = pool_;
  pool.block = convolution_.block(s.records);
  return pool;
}

void convolution_pool::forward(std::int64_t batch, const float* x, const float* w, const float* b,
                               std::span<float> y) {
  convolution_.set_weights(w);
  winner_.resize(y.size());
  each_slice(batch, [&](const slice& s) {
    const auto out = between(s.records);
    const auto at = static_cast<std::size_t>(s.first * y_size_);
    const auto size = static_cast<std::size_t>(s.records * y_size_);
    convolution_.forward(s.records, x + s.first * x_size_, b, out.data());
    max_pool(pool_of(s), s.records, out, y.subspan(at, size), std::span(winner_).subspan(at, size));
  });
}

void convolution_pool::backward(std::int64_t batch, const float* x, const float* w, std::span<const float> dy,
                                float* dw, float* db, float* dx) {
  convolution_.set_weights(w);
  each_slice(batch, [&](const slice& s) {
    const auto gradient = between(s.records);
    const auto at = static_cast<std::size_t>(s.first * y_size_);
    const auto size = static_cast<std::size_t>(s.records * y_size_);
    max_pool_backward(pool_of(s), s.records, std::span(winner_).subspan(at, size), dy.subspan(at, size),
                      gradient);
    const bool starts = s.first == 0;
    convolution_.backward(s.records, x + s.first * x_size_, gradient.data(), starts ? dw : dw_part_.data(),
                          starts ? db : db_part_.data(), dx ? dx + s.first * x_size_ : nullptr);
    if (starts) return;
    const auto sum = [](float* into, const std::vector<float>& part) {
      add(std::span<const float>(into, part.size()), part, {into, part.size()});
    };
    sum(dw, dw_part_);
    if (geometry_.bias) sum(db, db_part_);
  });
}

} // namespace dlrun::kernels::cpu
