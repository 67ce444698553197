#include "kernels/cpu/weights_gradient.hpp"

#include "kernels/cpu/tile.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

using vector = floats8;
constexpr std::int64_t panel_channels = tile_columns<vector>;
constexpr std::int64_t lanes = vector::lanes;

// A chunk of a panel of dy, and the pixels of a block of x that it meets, fit a first-level cache
// of 32 KiB.
constexpr std::int64_t chunk_pixels_max = 256;
constexpr std::int64_t block_channels_max = 16;

/// A vector of channels of `pixels` pixels, which lie `step` apart, into a panel; their sum.
void sum_and_copy(const float* from, std::int64_t step, std::int64_t pixels, float* to, float* sum) {
  auto total = vector::zero();
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    const auto values = vector::load(from + pixel * step);
    values.store(to + pixel * panel_channels);
    total = total + values;
  }
  total.store(sum);
}

} // namespace

weights_gradient::weights_gradient(const convolution_geometry& geometry)
    : geometry_(geometry)
    , padded_height_(geometry.height + 2 * geometry.padding_height())
    , padded_width_(geometry.width + 2 * geometry.padding)
    , channels_(std::min(geometry.in_channels, block_channels_max))
    , blocks_((geometry.in_channels + channels_ - 1) / channels_)
    , panels_((geometry.out_channels + panel_channels - 1) / panel_channels)
    , chunk_rows_(
          even_part(geometry.out_height, std::max<std::int64_t>(1, chunk_pixels_max / geometry.out_width)))
    , db_(static_cast<std::size_t>(panels_ * panel_channels)) {
  const auto& g = geometry_;
  const std::int64_t block_size = padded_height_ * padded_width_ * channels_;
  for (std::int64_t row = 0; row < g.kernel_height(); ++row)
    for (std::int64_t column = 0; column < g.kernel; ++column)
      for (std::int64_t c = 0; c < g.in_channels; ++c)
        rows_.push_back(c / channels_ * block_size + (row * padded_width_ + column) * channels_ +
                        c % channels_);
  x_.resize(blocks_ * block_size);
  std::fill_n(x_.data(), blocks_ * block_size, 0.0F);
  const std::int64_t chunk_size = chunk_rows_ * g.out_width * panel_channels;
  dy_.resize(panels_ * chunk_size);
  std::fill_n(dy_.data(), panels_ * chunk_size, 0.0F); // of a last panel that has fewer channels
  dw_.resize(panels_ * static_cast<std::int64_t>(rows_.size()) * panel_channels);
}

/// The pixels of a record into x_, inside the padding.
void weights_gradient::pad(const float* x) {
  const auto& g = geometry_;
  for (std::int64_t block = 0; block < blocks_; ++block) {
    const std::int64_t first = block * channels_, count = std::min(channels_, g.in_channels - first);
    for (std::int64_t row = 0; row < g.height; ++row) {
      const std::int64_t to_row = block * padded_height_ + row + g.padding_height();
      float* to = x_.data() + (to_row * padded_width_ + g.padding) * channels_;
      const float* from = x + row * g.width * g.in_channels + first;
      if (count == g.in_channels) {
        std::copy_n(from, g.width * count, to);
        continue;
      }
      for (std::int64_t column = 0; column < g.width; ++column, from += g.in_channels, to += channels_)
        std::copy_n(from, count, to);
    }
  }
}

/// A row of pixels of dy into all panels, as the one that begins at pixel `at` of the chunk; its
/// sum into db_.
void weights_gradient::pack_row(const float* dy, std::int64_t block, std::int64_t row, std::int64_t at) {
  const auto& g = geometry_;
  const std::int64_t chunk_size = chunk_rows_ * g.out_width * panel_channels;
  for (std::int64_t first = 0; first < g.out_channels; first += lanes) {
    const std::int64_t count = std::min(lanes, g.out_channels - first);
    const std::int64_t pixel = first / block * g.out_height * g.out_width + row * g.out_width;
    const float* from = dy + pixel * block + first % block;
    float* to =
        dy_.data() + first / panel_channels * chunk_size + at * panel_channels + first % panel_channels;
    std::array<float, lanes> sum{};
    if (count == lanes)
      sum_and_copy(from, block, g.out_width, to, sum.data());
    else
      for (std::int64_t column = 0; column < g.out_width; ++column, from += block, to += panel_channels)
        for (std::int64_t c = 0; c < count; ++c) {
          to[c] = from[c];
          sum[static_cast<std::size_t>(c)] += from[c];
        }
    for (std::int64_t c = 0; c < count; ++c)
      db_[static_cast<std::size_t>(first + c)] += static_cast<double>(sum[static_cast<std::size_t>(c)]);
  }
}

/// The products of x_ and of the chunk in dy_, which has rows [first_row, first_row + rows), into
/// dw_.
void weights_gradient::multiply(std::int64_t first_row, std::int64_t rows, bool adds) {
  const auto& g = geometry_;
  const auto count = static_cast<std::int64_t>(rows_.size());
  tile_operand operand{.data = x_.data() + first_row * g.stride_height() * padded_width_ * channels_,
                       .step = g.stride * channels_,
                       .length = g.out_width,
                       .segments = rows,
                       .segment_step = g.stride_height() * padded_width_ * channels_};
  for (std::int64_t panel = 0; panel < panels_; ++panel) {
    const float* const dy = dy_.data() + panel * chunk_rows_ * g.out_width * panel_channels;
    float* const dw = dw_.data() + panel * count * panel_channels;
    each_tile(count, [&](std::int64_t first, std::int64_t size) {
      std::copy_n(rows_.data() + first, size, operand.rows.begin());
      multiply_rows<vector>(size, operand, dy, dw + first * panel_channels, panel_channels, adds);
    });
  }
}

void weights_gradient::write(float* dw, float* db) const {
  const auto& g = geometry_;
  const std::int64_t taps = g.kernel_height() * g.kernel;
  for (std::int64_t o = 0; o < g.out_channels; ++o) {
    const float* const sums = dw_.data() + o / panel_channels * taps * g.in_channels * panel_channels;
    for (std::int64_t c = 0; c < g.in_channels; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        *dw++ = sums[(tap * g.in_channels + c) * panel_channels + o % panel_channels];
    if (g.bias) db[o] = static_cast<float>(db_[static_cast<std::size_t>(o)]);
  }
}

void weights_gradient::operator()(std::int64_t batch, const float* x, const float* dy, std::int64_t block,
                                  float* dw, float* db) {
  const auto& g = geometry_;
  DLRUN_CHECK(block == g.out_channels || (block % lanes == 0 && g.out_channels % block == 0),
              "blocks of {} of {} channels", block, g.out_channels);
  std::ranges::fill(db_, 0.0);
  for (std::int64_t n = 0; n < batch; ++n) {
    pad(x + n * g.height * g.width * g.in_channels);
    const float* const record = dy + n * g.out_height * g.out_width * g.out_channels;
    for (std::int64_t first = 0; first < g.out_height; first += chunk_rows_) {
      const std::int64_t rows = std::min(chunk_rows_, g.out_height - first);
      for (std::int64_t row = 0; row < rows; ++row) pack_row(record, block, first + row, row * g.out_width);
      multiply(first, rows, n > 0 || first > 0);
    }
  }
  write(dw, db);
}

} // namespace dlrun::kernels::cpu
