// Samples a second of one worker's GPU, alone: no PS shard, no actors.
//   build/release/bin/gpu_step build/release/lib/libdlrun_cuda.so resnet50 64 5 bf16
// `bare` is forward and backward pass with the records brought to the GPU; `worker` also brings the
// parameters there and the gradient back, as a step of a worker does. Prints one line of JSON.
#include "benchmarks/benchmark_models.hpp"
#include "engine/cuda/cuda_computer.hpp"
#include "kernels/cuda/module.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dlrun;
using clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "gpu_step: {}\n", why);
  std::exit(1);
}

template <class Value>
Value or_give_up(result<Value>&& made) {
  if (!made) give_up(made.error().message);
  if constexpr (!std::is_void_v<Value>) return std::move(*made);
}

/// A model with initial values, and a batch for it.
class problem {
public:
  problem(const std::string& name, std::int64_t size)
      : model_{benchmarks::model_of(text_of(name))}
      , size_{size}
      , parameters_(model_->layout().flat_size())
      , records_(static_cast<std::size_t>(size * *element_count(model_->input_shape())))
      , labels_(static_cast<std::size_t>(size)) {
    std::mt19937 random(1);
    const auto classes = static_cast<std::uint32_t>(model_->output_shape()[0]);
    for (auto& value : records_) value = static_cast<float>(random() % 256) / 255.0F - 0.5F;
    for (auto& label : labels_) label = static_cast<std::int32_t>(random() % classes);
    model_->initialise(1, parameters_);
  }

  const std::shared_ptr<const engine::model>& model() const { return model_; }
  std::span<const float> parameters() const { return parameters_; }
  dlrun::batch batch() const { return {records_, labels_, {}, size_}; }

private:
  static std::string text_of(const std::string& name) {
    if (name == "mlp") return benchmarks::mlp;
    if (name == "cnn") return benchmarks::cnn;
    if (name == "resnet50") return benchmarks::resnet50();
    give_up(fmt::format("no model '{}', but mlp, cnn and resnet50", name));
  }

  std::shared_ptr<const engine::model> model_;
  std::int64_t size_;
  std::vector<float> parameters_, records_;
  std::vector<std::int32_t> labels_;
};

kernels::cuda::precision precision_of(std::string_view word) {
  using enum kernels::cuda::precision;
  for (const auto one : {fp32, tf32, bf16})
    if (word == kernels::cuda::name_of(one)) return one;
  give_up(fmt::format("no precision '{}', but fp32, tf32 and bf16", word));
}

/// Samples a second of `step`, which takes `size` samples, over so many seconds after a warm-up.
template <class Step>
double throughput(std::int64_t size, double seconds, const Step& step) {
  constexpr int warm_up = 5;
  for (int i = 0; i < warm_up; ++i) step();
  std::int64_t steps = 0;
  const auto begin = clock::now();
  std::chrono::duration<double> taken{};
  do {
    step();
    ++steps;
    taken = clock::now() - begin;
  } while (taken.count() < seconds);
  return static_cast<double>(steps * size) / taken.count();
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) give_up("usage: gpu_step MODULE mlp|cnn|resnet50 BATCH SECONDS fp32|tf32|bf16");
  const std::string name = argv[2];
  const std::int64_t size = std::atoll(argv[3]);
  const double seconds = std::atof(argv[4]);
  if (size < 1 || !(seconds > 0)) give_up("BATCH and SECONDS are numbers above 0");
  const auto arithmetic = precision_of(argv[5]);
  const problem given{name, size};
  auto* const cuda = or_give_up(kernels::cuda::load_module(argv[1]));
  auto device = or_give_up(cuda->open(0, arithmetic));
  const auto properties = device->properties();
  const auto computer = engine::make_cuda_computer(given.model(), 1, std::move(device));
  or_give_up(computer->read({0}, given.parameters()));
  std::vector<float> on_host(given.parameters().size());
  const auto gradient = or_give_up(computer->lend(on_host));
  const auto compute = [&] {
    or_give_up(computer->forward_backward(given.batch(), {1, 2, 3}, *gradient, nullptr));
  };
  const double bare = throughput(size, seconds, compute);
  const double worker = throughput(size, seconds, [&] {
    or_give_up(computer->read({0}, given.parameters()));
    compute();
    or_give_up(computer->copy(*gradient, 0, on_host));
  });
  fmt::print(
      R"({{"model": "{}", "batch": {}, "precision": "{}", "bare": {:.1f}, "worker": {:.1f}, "device": "{}"}})"
      "\n",
      name, size, name_of(arithmetic), bare, worker, properties.name);
}
