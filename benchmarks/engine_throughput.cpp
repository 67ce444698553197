// Samples a second of the engine alone on one thread: forward, backward and the optimizer's update,
// on random records.
//   build/release/bin/engine_throughput --benchmark_min_time=3
#include "engine/network.hpp"
#include "engine/optimizer.hpp"
#include "proto/job_spec.pb.h"

#include <benchmark/benchmark.h>
#include <google/protobuf/text_format.h>
#include <random>

namespace {

using namespace dlrun;

constexpr const char* mlp = R"(input: [1, 28, 28]
  layers { flatten {} }
  layers { linear { out_features: 512 } } layers { relu {} }
  layers { linear { out_features: 512 } } layers { relu {} }
  layers { linear { out_features: 10 } })";

constexpr const char* cnn = R"(input: [1, 28, 28]
  layers { conv2d { out_channels: 32 kernel_size: 3 padding: 1 } } layers { relu {} }
  layers { max_pool2d { kernel_size: 2 } }
  layers { conv2d { out_channels: 64 kernel_size: 3 padding: 1 } } layers { relu {} }
  layers { max_pool2d { kernel_size: 2 } }
  layers { flatten {} }
  layers { linear { out_features: 128 } } layers { relu {} }
  layers { linear { out_features: 10 } })";

template <class Message>
Message parse(const char* text) {
  Message message;
  google::protobuf::TextFormat::ParseFromString(text, &message);
  return message;
}

void train(benchmark::State& state, const char* specification) {
  const auto model = engine::model::build(parse<spec::ModelSpec>(specification)).value();
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
