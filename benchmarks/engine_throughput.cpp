// Samples a second of the engine alone on one thread: forward, backward and the optimizer's update,
// on random records.
//   build/release/bin/engine_throughput --benchmark_min_time=3
#include "benchmarks/benchmark_models.hpp"
#include "engine/network.hpp"
#include "engine/optimizer.hpp"

#include <benchmark/benchmark.h>
#include <random>

namespace {

using namespace dlrun;
using benchmarks::cnn;
using benchmarks::mlp;
using benchmarks::parse;

void train(benchmark::State& state, const char* specification) {
  const auto model = benchmarks::model_of(specification);
  const auto optimizer =
      engine::optimizer::build(parse<spec::OptimizerSpec>("sgd { lr: 0.05 momentum: 0.9 }")).value();
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<float> parameters(model->layout().flat_size()), gradient(parameters.size()),
      velocity(parameters.size());
  std::vector<float> records(size * 784);
  std::vector<std::int32_t> labels(size);
  std::mt19937 random(1);
  for (auto& value : records) value = static_cast<float>(random() % 256) / 255.0F - 0.5F;
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 10);
  model->initialise(1, parameters);
  engine::network network(model, 1);
  const dlrun::batch batch{records, labels, {}, state.range(0)};
  for (auto _ : state) {
    if (!network.forward_backward(parameters, batch, {}, gradient))
      state.SkipWithError("forward_backward failed");
    optimizer.update({{0}, optimizer.lr(), 1.0F / static_cast<float>(size)}, gradient, parameters, parameters,
                     velocity);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK_CAPTURE(train, mlp, mlp)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, cnn, cnn)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);

} // namespace
