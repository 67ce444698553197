#include "kernels/cpu/average_pool.hpp"
#include "kernels/cpu/max_pool.hpp"
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

class pools : public on_each_device {};
DLRUN_ON_EACH_DEVICE(pools);

// ---- max

/// Windows that overlap, leave a rest, are padded, leave pixels between them.
const std::vector<cpu::pool_geometry> geometries{
    {5, 6, 8, 3, 4, 2, 2, 0}, {16, 7, 7, 6, 6, 2, 1, 0}, {9, 7, 9, 3, 4, 3, 2, 0}, {8, 8, 8, 4, 4, 3, 2, 1},
    {3, 9, 9, 2, 2, 4, 4, 0}, {4, 5, 5, 2, 2, 2, 3, 0},  {1, 1, 1, 1, 1, 1, 1, 0}, {2, 4, 6, 3, 4, 2, 2, 1},
    {1, 6, 6, 6, 6, 5, 1, 2}, {2, 5, 1, 5, 1, 3, 1, 1}};

/// Values of which many are equal, and some are NaN or -0.
std::vector<float> values_with_ties(std::int64_t count) {
  std::mt19937 random(3);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x) {
    const auto drawn = random() % 40;
    value = drawn == 0 ? NAN : drawn == 1 ? -0.0F : static_cast<float>(drawn % 9) - 4.0F;
  }
  return x;
}

TEST_P(pools, max_pool_and_its_gradient_have_the_bits_of_their_twins) {
  for (const auto& g : geometries)
    for (const std::int64_t batch : {0, 1, 5}) {
      const std::int64_t in = batch * g.height * g.width * g.channels;
      const std::int64_t out = batch * g.out_height * g.out_width * g.channels;
      const auto x = values_with_ties(in), dy = some_floats(out, 4);
      std::vector<float> y(dy.size()), dx(x.size());
      std::vector<std::int32_t> winner(dy.size());
      cpu::max_pool(g, batch, x, y, winner);
      cpu::max_pool_backward(g, batch, winner, dy, dx);

      on_device there(GetParam());
      float *const y_there = there.room<float>(out), *const dx_there = there.room<float>(in);
      auto* const winner_there = there.room<std::int32_t>(out);
      there.run(max_pool_forward{g, batch, there.put(x), y_there, winner_there});
      expect_same_bits(there.get(y_there, out), y);
      expect_same_bits(there.get(winner_there, out), winner);
      there.run(max_pool_backward{g, batch, winner_there, there.put(dy), dx_there});
      expect_same_bits(there.get(dx_there, in), dx);
    }
}

// ---- average

struct axis_of_windows {
  std::int64_t extent;
  std::vector<cpu::axis_window> windows;
};

const std::vector<axis_of_windows> axes{{6, cpu::strided_windows(6, 3, 2, 2, 0, true)},
                                        {7, cpu::strided_windows(7, 4, 3, 2, 1, true)},
                                        {7, cpu::strided_windows(7, 4, 3, 2, 1, false)},
                                        {9, cpu::strided_windows(9, 2, 2, 5, 0, true)},
                                        {5, cpu::adaptive_windows(5, 1)},
                                        {7, cpu::adaptive_windows(7, 3)},
                                        {3, cpu::adaptive_windows(3, 7)},
                                        {1, cpu::adaptive_windows(1, 1)}};

void compare_average_pools(int variant, const axis_of_windows& rows, const axis_of_windows& columns,
                           std::int64_t batch, std::int64_t channels) {
  const cpu::average_geometry g{channels, rows.extent, columns.extent, rows.windows, columns.windows};
  const auto row_count = std::ssize(g.rows), column_count = std::ssize(g.columns);
  const std::int64_t in = batch * g.height * g.width * channels;
  const std::int64_t out = batch * row_count * column_count * channels;
  const auto x = some_floats(in, 1), dy = some_floats(out, 2);
  std::vector<float> y(dy.size()), dx(x.size());
  cpu::average_pool(g, batch, x, y);
  cpu::average_pool_backward(g, batch, dy, dx);

  on_device there(variant);
  const pool_windows windows{channels,  g.height,    g.width, there.put(g.rows), there.put(g.columns),
                             row_count, column_count};
  float *const y_there = there.room<float>(out), *const dx_there = there.room<float>(in);
  there.run(average_pool_forward{windows, batch, there.put(x), y_there});
  expect_same_bits(there.get(y_there, out), y);
  there.run(average_pool_backward{windows, batch, there.put(dy), dx_there});
  expect_same_bits(there.get(dx_there, in), dx);
}

TEST_P(pools, average_pool_and_its_gradient_have_the_bits_of_their_twins) {
  for (const auto& rows : axes)
    for (const auto& columns : axes) compare_average_pools(GetParam(), rows, columns, 2, 5);
  compare_average_pools(GetParam(), axes[0], axes[1], 0, 3);
  compare_average_pools(GetParam(), axes[1], axes[5], 1, 1);
}

} // namespace
} // namespace dlrun::kernels::cuda
