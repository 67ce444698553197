#include "kernels/cpu/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {

void softmax(std::int64_t width, std::span<const float> x, std::span<float> y) {
  const auto row = static_cast<std::size_t>(width);
  DLRUN_CHECK(width >= 1 && x.size() == y.size() && x.size() % row == 0,
              "softmax of {} floats to {}, rows of {}", x.size(), y.size(), width);
  for (std::size_t begin = 0; begin < x.size(); begin += row) {
    const auto in = x.subspan(begin, row);
    const auto out = y.subspan(begin, row);
    const float max = *std::ranges::max_element(in);
    double sum = 0;
    for (std::size_t i = 0; i < row; ++i) {
      out[i] = std::exp(in[i] - max);
      sum += static_cast<double>(out[i]);
    }
    for (float& value : out) value = static_cast<float>(static_cast<double>(value) / sum);
  }
}

void softmax_backward(std::int64_t width, std::span<const float> y, std::span<const float> dy,
                      std::span<float> dx) {
  const auto row = static_cast<std::size_t>(width);
  DLRUN_CHECK(width >= 1 && y.size() == dy.size() && y.size() == dx.size() && y.size() % row == 0,
              "softmax_backward of sizes {}, {} and {}, rows of {}", y.size(), dy.size(), dx.size(), width);
  for (std::size_t begin = 0; begin < y.size(); begin += row) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + row; ++i)
      sum += static_cast<double>(dy[i]) * static_cast<double>(y[i]);
    const auto mean = static_cast<float>(sum);
    for (std::size_t i = begin; i < begin + row; ++i) dx[i] = y[i] * (dy[i] - mean);
  }
}

} // namespace dlrun::kernels::cpu
