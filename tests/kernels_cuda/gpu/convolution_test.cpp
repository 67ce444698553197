#include "tests/kernels_cuda/gpu/close_sums.hpp"
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

using pass = convolution::pass;

cpu::convolution_geometry square(std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t kernel,
                                 std::int64_t stride, std::int64_t padding) {
  const std::int64_t out_size = (size + 2 * padding - kernel) / stride + 1;
  return {in, size, size, out, out_size, out_size, kernel, stride, padding};
}

cpu::convolution_geometry flat(std::int64_t in, std::int64_t width, std::int64_t out, std::int64_t kernel,
                               std::int64_t stride, std::int64_t padding) {
  return {in,     1,      width,   out,   1,   (width + 2 * padding - kernel) / stride + 1,
          kernel, stride, padding, false, true};
}

/// Of usual networks and of none: odd sizes, single channels and pixels, strides that leave pixels
/// over, kernels as large as the image, padding wider than the kernel's half, unequal sides.
const std::vector<cpu::convolution_geometry>& geometries() {
  static const std::vector<cpu::convolution_geometry> all{
      square(1, 28, 8, 5, 1, 0),  square(3, 32, 16, 3, 1, 1), square(16, 14, 16, 3, 1, 1),
      square(3, 23, 12, 7, 2, 3), square(16, 9, 32, 1, 1, 0), square(16, 9, 32, 1, 2, 0),
      square(5, 7, 3, 3, 2, 1),   square(7, 10, 5, 2, 2, 0),  square(2, 6, 4, 6, 1, 0),
      square(4, 5, 3, 3, 3, 4),   square(1, 1, 1, 1, 1, 0),   {3, 9, 4, 6, 6, 3, 3, 2, 2},
      flat(16, 50, 8, 5, 1, 2),   flat(1, 9, 1, 3, 1, 0),     flat(3, 31, 7, 4, 3, 1)};
  return all;
}

struct tensors {
  std::vector<float> x, w, y;
};

tensors tensors_of(const cpu::convolution_geometry& g, std::int64_t batch) {
  return {some_floats(batch * g.height * g.width * g.in_channels, 1, true),
          some_floats(g.out_channels * g.kernel_height() * g.kernel * g.in_channels, 2, true),
          some_floats(batch * g.out_height * g.out_width * g.out_channels, 3, true)};
}

/// Calls use(x, w, y) with the places of each product of the convolution.
template <class Use>
void each_product(const cpu::convolution_geometry& g, std::int64_t batch, Use use) {
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t row = 0; row < g.out_height; ++row)
      for (std::int64_t column = 0; column < g.out_width; ++column)
        for (std::int64_t r = 0; r < g.kernel_height(); ++r)
          for (std::int64_t c = 0; c < g.kernel; ++c) {
            const std::int64_t from_row = row * g.stride_height() + r - g.padding_height();
            const std::int64_t from_column = column * g.stride + c - g.padding;
            if (from_row < 0 || from_row >= g.height || from_column < 0 || from_column >= g.width) continue;
            const std::int64_t x = ((n * g.height + from_row) * g.width + from_column) * g.in_channels;
            const std::int64_t y = ((n * g.out_height + row) * g.out_width + column) * g.out_channels;
            for (std::int64_t out = 0; out < g.out_channels; ++out)
              for (std::int64_t in = 0; in < g.in_channels; ++in)
                use(static_cast<std::size_t>(x + in),
                    static_cast<std::size_t>(((out * g.kernel_height() + r) * g.kernel + c) * g.in_channels +
                                             in),
                    static_cast<std::size_t>(y + out));
          }
}

std::vector<plain_sum> wanted_tensor(pass which, const cpu::convolution_geometry& g, std::int64_t batch,
                                     const tensors& t) {
  std::vector<plain_sum> wanted(which == pass::forward         ? t.y.size()
                                : which == pass::backward_data ? t.x.size()
                                                               : t.w.size());
  each_product(g, batch, [&](std::size_t x, std::size_t w, std::size_t y) {
    switch (which) {
    case pass::forward: wanted[y].add(t.x[x], t.w[w]); break;
    case pass::backward_data: wanted[x].add(t.w[w], t.y[y]); break;
    case pass::backward_weights: wanted[w].add(t.x[x], t.y[y]); break;
    }
  });
  return wanted;
}

/// What the pass computes, over what was not a number; `shift` floats behind where memory is
/// aligned.
std::vector<float> computed(on_device& there, pass which, const cpu::convolution_geometry& g,
                            std::int64_t batch, const tensors& t, std::size_t shift = 0) {
  const auto put = [&](std::vector<float> values, bool computed) {
    if (computed) std::fill(values.begin(), values.end(), NAN);
    values.insert(values.begin(), shift, NAN);
    return there.put(values) + shift;
  };
  float* const x = put(t.x, which == pass::backward_data);
  float* const w = put(t.w, which == pass::backward_weights);
  float* const y = put(t.y, which == pass::forward);
  there.run(convolution{which, g, batch, x, w, y});
  if (which == pass::forward) return there.get(y, static_cast<std::int64_t>(t.y.size()));
  if (which == pass::backward_data) return there.get(x, static_cast<std::int64_t>(t.x.size()));
  return there.get(w, static_cast<std::int64_t>(t.w.size()));
}

class gpu_convolution : public testing::TestWithParam<pass> {};
INSTANTIATE_TEST_SUITE_P(pass, gpu_convolution,
                         testing::Values(pass::forward, pass::backward_data, pass::backward_weights));

TEST_P(gpu_convolution, is_in_single_precision_for_all_geometries) {
  for (std::size_t i = 0; i < geometries().size(); ++i)
    for (const std::int64_t batch : {1, 3, 64}) {
      SCOPED_TRACE(testing::Message() << "geometry " << i << ", batch " << batch);
      const auto& g = geometries()[i];
      const auto t = tensors_of(g, batch);
      on_device there(0);
      expect_single_precision(computed(there, GetParam(), g, batch, t),
                              wanted_tensor(GetParam(), g, batch, t));
    }
}

TEST_P(gpu_convolution, has_the_same_bits_wherever_and_whenever_it_is_computed) {
  for (std::size_t i = 0; i < geometries().size(); ++i) {
    SCOPED_TRACE(testing::Message() << "geometry " << i);
    const auto& g = geometries()[i];
    const auto t = tensors_of(g, 64);
    on_device there(0);
    const auto first = computed(there, GetParam(), g, 64, t);
    expect_same_bits(computed(there, GetParam(), g, 64, t), first);
    expect_same_bits(computed(there, GetParam(), g, 64, t, 4), first); // other addresses
  }
}

TEST_P(gpu_convolution, takes_tensors_that_are_aligned_to_floats_alone) {
  for (std::size_t i = 0; i < geometries().size(); ++i) {
    SCOPED_TRACE(testing::Message() << "geometry " << i);
    const auto& g = geometries()[i];
    const auto t = tensors_of(g, 5);
    on_device there(0);
    expect_single_precision(computed(there, GetParam(), g, 5, t, 1), wanted_tensor(GetParam(), g, 5, t));
  }
}

TEST_P(gpu_convolution, of_no_records_computes_no_more_than_zero_weights) {
  const auto g = square(3, 8, 4, 3, 1, 1);
  tensors t{{}, std::vector<float>(108, 1.0F), {}};
  on_device there(0);
  const auto got = computed(there, GetParam(), g, 0, t);
  expect_same_bits(got, std::vector<float>(GetParam() == pass::backward_weights ? 108 : 0, 0.0F));
}

TEST_P(gpu_convolution, runs_in_both_lanes_at_once) {
  const auto g = square(16, 14, 16, 3, 1, 1);
  const auto t = tensors_of(g, 64);
  on_device there(0);
  const auto wanted = computed(there, GetParam(), g, 64, t);
  std::vector<std::vector<float*>> all;
  for (int i = 0; i < 10; ++i) {
    auto& one = all.emplace_back(std::vector<float*>{there.put(t.x), there.put(t.w), there.put(t.y)});
    there.get().run(i % 2 == 0 ? lane::compute : lane::side,
                    convolution{GetParam(), g, 64, one[0], one[1], one[2]});
  }
  ASSERT_TRUE(there.get().finish(lane::side));
  ASSERT_TRUE(there.get().finish(lane::compute));
  const std::size_t written = GetParam() == pass::forward ? 2 : GetParam() == pass::backward_data ? 0 : 1;
  for (const auto& one : all)
    expect_same_bits(there.get(one[written], static_cast<std::int64_t>(wanted.size())), wanted);
}

} // namespace
} // namespace dlrun::kernels::cuda
