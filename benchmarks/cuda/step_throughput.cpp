/// How fast a GPU computes steps: kernels of dlrun as a share of the bandwidth that CUDA's own copy
/// has, products and convolutions in TFLOP/s. One JSON object for each line; those in bf16 say so.
///
/// A figure is the median of 9 times, each of as many runs in a row as take about 5 ms.

#include "kernels/cuda/cuda_module.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dlrun;
using namespace dlrun::kernels::cuda;
namespace cpu = dlrun::kernels::cpu;

/// Of each tensor of a kernel whose bandwidth is measured.
constexpr std::int64_t numbers = std::int64_t{64} << 20;

[[noreturn]] void give_up(const error& why) {
  std::fprintf(stderr, "step_throughput: %s\n", why.message.c_str());
  std::exit(1);
}

template <class Value>
Value value_of(result<Value> got) {
  if (!got) give_up(got.error());
  return std::move(*got);
}

class bench {
public:
  explicit bench(device& there)
      : there_(there) {}
  ~bench() {
    for (void* const one : memory_) there_.release(one);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  /// Before the name of each step.
  std::string_view prefix() const { return there_.arithmetic() == precision::bf16 ? "bf16 " : ""; }
  /// Memory of ones, as floats.
  float* ones(std::int64_t count) {
    auto* const memory =
        static_cast<float*>(value_of(there_.allocate(static_cast<std::size_t>(count) * sizeof(float))));
    memory_.push_back(memory);
    there_.run(lane::compute, fill{memory, count, 1.0F});
    return memory;
  }
  device& there() { return there_; }

  double seconds(const std::function<void()>& put) {
    timed(put, 1);
    const double once = std::max(timed(put, 1), 1e-6);
    const int runs = std::clamp(static_cast<int>(0.005 / once), 1, 1000);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) times.push_back(timed(put, runs) / runs);
    std::ranges::nth_element(times, times.begin() + 4);
    return times[4];
  }

private:
  double timed(const std::function<void()>& put, int runs) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) put();
    if (const auto done = there_.finish(lane::compute); !done) give_up(done.error());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  device& there_;
  std::vector<void*> memory_;
};

struct bandwidth_case {
  std::string name;
  double activations; ///< that are read and written, as parts of `numbers`
  step what;
  double floats = 0; ///< and of 4 bytes in every precision
};

/// Steps over activations of 256 MB, or 128 MB in bf16.
std::vector<bandwidth_case> bandwidth_cases(bench& b) {
  float *const x = b.ones(numbers), *const y = b.ones(numbers), *const z = b.ones(numbers);
  float *const small = b.ones(4096), *const more = b.ones(4096), *const most = b.ones(4096);
  const std::int64_t channels = 256, rows = numbers / channels;
  const cpu::pool_geometry halves{.channels = 64,
                                  .height = 128,
                                  .width = 128,
                                  .out_height = 64,
                                  .out_width = 64,
                                  .kernel = 2,
                                  .stride = 2};
  return {{"copy_activations", 2, copy_activations{x, y, numbers}},
          {"clear_activations", 1, clear_activations{x, numbers}},
          {"add", 3, add{x, y, z, numbers}},
          {"relu_forward", 2, relu_forward{x, y, numbers}},
          {"relu_backward", 3, relu_backward{x, y, z, numbers}},
          {"activate_forward", 2, activate_forward{cpu::activation::gelu, 0.0F, x, y, numbers}},
          {"dropout", 2, dropout{reinterpret_cast<const slot_key*>(more), 3, 0.5F, 2.0F, x, y, numbers}},
          {"transpose", 2, transpose{16, 2048, numbers / 16 / 2048, x, y}},
          {"sum_columns", 1, sum_columns{rows, channels, x, small}},
          {"add_row", 2, add_row{rows, channels, small, x}},
          {"batch_statistics", 1, batch_statistics{rows, channels, 1e-5F, x, small, more, most}},
          {"normalise", 2, normalise{rows, channels, small, more, nullptr, nullptr, x, y}},
          {"batch_norm_backward", 3,
           batch_norm_backward{rows, channels, small, more, nullptr, x, y, nullptr, nullptr, z}},
          {"softmax_forward", 2, softmax_forward{rows, channels, x, y}},
          {"max_pool_forward", 1.25, max_pool_forward{halves, 64, x, y, reinterpret_cast<std::int32_t*>(z)},
           0.25}};
}

void measure_bandwidth(bench& b) {
  float *const from = b.ones(numbers), *const to = b.ones(numbers);
  const double bytes = static_cast<double>(numbers) * sizeof(float);
  const double copying = b.seconds([&] {
    if (cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, nullptr) !=
            cudaSuccess ||
        cudaStreamSynchronize(nullptr) != cudaSuccess)
      give_up({error_code::system, "CUDA copies nothing"});
  });
  const double peak = 2 * bytes / copying;
  const auto stored =
      static_cast<double>(numbers) * static_cast<double>(activation_bytes(b.there().arithmetic()));
  fmt::print("{{\"step\": \"cudaMemcpyAsync\", \"GB/s\": {:.0f}, \"share of copy\": 1.0}}\n", peak / 1e9);
  for (const auto& one : bandwidth_cases(b)) {
    const double moved = one.activations * stored + one.floats * bytes;
    const double speed = moved / b.seconds([&] { b.there().run(lane::compute, one.what); });
    fmt::print("{{\"step\": \"{}{}\", \"GB/s\": {:.0f}, \"share of copy\": {:.2f}}}\n", b.prefix(), one.name,
               speed / 1e9, speed / peak);
  }
}

void measure_products(bench& b) {
  for (const auto [m, n, k] :
       {std::array<std::int64_t, 3>{4096, 4096, 4096}, {64, 512, 784}, {512, 1024, 1024}}) {
    product what{m, n, k, false, true, b.ones(m * k), b.ones(k * n), b.ones(n), b.ones(m * n)};
    for (const bool relu : {false, true}) {
      what.relu = relu;
      const double time = b.seconds([&] { b.there().run(lane::compute, what); });
      fmt::print("{{\"step\": \"{}product {}x{}x{}{}\", \"us\": {:.1f}, \"TFLOP/s\": {:.2f}}}\n", b.prefix(),
                 m, n, k, relu ? " with relu" : "", time * 1e6,
                 2.0 * static_cast<double>(m * n * k) / time / 1e12);
    }
  }
}

/// The passes of layers of a ResNet-50 and of a small network.
void measure_convolutions(bench& b) {
  constexpr std::array names{"forward", "backward_data", "backward_weights"};
  const std::vector<std::array<std::int64_t, 7>> layers{{64, 3, 224, 64, 7, 2, 3},
                                                        {64, 64, 56, 64, 3, 1, 1},
                                                        {64, 256, 14, 256, 3, 1, 1},
                                                        {64, 256, 56, 64, 1, 1, 0},
                                                        {64, 16, 28, 32, 3, 1, 1}};
  for (const auto& [batch, in, size, out, kernel, stride, padding] : layers) {
    const std::int64_t after = (size + 2 * padding - kernel) / stride + 1;
    const cpu::convolution_geometry g{in, size, size, out, after, after, kernel, stride, padding};
    float *const x = b.ones(batch * size * size * in), *const w = b.ones(out * kernel * kernel * in),
                 *const y = b.ones(batch * after * after * out);
    for (int i = 0; i < 3; ++i) {
      const convolution what{static_cast<convolution::pass>(i), g, batch, x, w, y};
      const double time = b.seconds([&] { b.there().run(lane::compute, what); });
      fmt::print("{{\"step\": \"{}convolution {}x{}x{}x{} to {} kernel {} stride {} {}\", \"us\": {:.1f}, "
                 "\"TFLOP/s\": {:.2f}}}\n",
                 b.prefix(), batch, in, size, size, out, kernel, stride,
                 names.at(static_cast<std::size_t>(i)), time * 1e6,
                 2.0 * static_cast<double>(batch * after * after * out * kernel * kernel * in) / time / 1e12);
    }
  }
}

/// What steps cost that have nothing to do, one by one or as a graph.
void measure_graphs(bench& b) {
  constexpr int steps = 64; // as many as the engine has in one
  float* const one = b.ones(1);
  const std::vector<step> all(steps, fill{one, 1, 1.0F});
  const auto made = value_of(b.there().make_graph(lane::compute, all));
  const double single = b.seconds([&] {
    for (const auto& what : all) b.there().run(lane::compute, what);
  });
  const double together = b.seconds([&] { b.there().run(*made); });
  fmt::print("{{\"step\": \"{} fills of one float\", \"us\": {:.2f}}}\n", steps, single * 1e6);
  fmt::print("{{\"step\": \"{} fills of one float, a graph\", \"us\": {:.2f}}}\n", steps, together * 1e6);
}

/// What a step costs that has nothing to do: the time of putting one into a lane, and of waiting.
void measure_launches(bench& b) {
  float* const one = b.ones(1);
  const double put = b.seconds([&] { b.there().run(lane::compute, fill{one, 1, 1.0F}); });
  const double waited = b.seconds([&] {
    b.there().run(lane::compute, fill{one, 1, 1.0F});
    if (const auto done = b.there().finish(lane::compute); !done) give_up(done.error());
  });
  fmt::print("{{\"step\": \"fill of one float\", \"us\": {:.2f}}}\n", put * 1e6);
  fmt::print("{{\"step\": \"fill of one float, waited for\", \"us\": {:.2f}}}\n", waited * 1e6);
}

} // namespace

int main() {
  cuda_module module;
  for (const auto arithmetic : {precision::fp32, precision::bf16}) {
    const auto opened = value_of(module.open(0, arithmetic));
    bench b(*opened);
    if (arithmetic == precision::fp32) {
      fmt::print("{{\"device\": \"{}\", \"libraries\": \"{}\"}}\n", opened->properties().name,
                 opened->properties().libraries);
      measure_launches(b);
      measure_graphs(b);
    }
    measure_bandwidth(b);
    measure_products(b);
    measure_convolutions(b);
  }
  return 0;
}
