// The optimizers on one core against the best memory bandwidth that the core shows, in the same
// run: vectors of 64 MiB, far larger than the caches. Bytes are those that the update's definition
// reads and writes.
//   build/release/bin/update_throughput
#include "engine/optimizer.hpp"
#include "kernels/cpu/reduce.hpp"
#include "proto/job_spec.pb.h"

#include <benchmark/benchmark.h>
#include <cstring>
#include <google/protobuf/text_format.h>
#include <string>
#include <vector>

namespace {

using namespace dlrun;

constexpr std::size_t floats = (std::size_t{64} << 20) / sizeof(float);

void set_bytes(benchmark::State& state, std::size_t passes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(passes * floats * sizeof(float)));
}

// ---- what the memory gives: the best of these is the floor

void read_only(benchmark::State& state) {
  const std::vector<float> a(floats, 1.0F);
  for (auto _ : state) {
    bool finite = kernels::cpu::all_finite(a);
    benchmark::DoNotOptimize(finite);
  }
  set_bytes(state, 1);
}

void copy(benchmark::State& state) {
  const std::vector<float> a(floats, 1.0F);
  std::vector<float> b(floats);
  for (auto _ : state) {
    std::memcpy(b.data(), a.data(), floats * sizeof(float));
    benchmark::ClobberMemory();
  }
  set_bytes(state, 2);
}

void add_in_place(benchmark::State& state) {
  const std::vector<float> a(floats, 1.0F);
  std::vector<float> b(floats);
  for (auto _ : state) {
    kernels::cpu::add(a, b, b);
    benchmark::ClobberMemory();
  }
  set_bytes(state, 3);
}

// ---- the optimizers, on two versions of the parameters as a PS shard has them, and in place

void update(benchmark::State& state, const std::string& specification, bool in_place) {
  spec::OptimizerSpec parsed;
  if (!google::protobuf::TextFormat::ParseFromString(specification, &parsed))
    return state.SkipWithError("no optimizer's text");
  const auto built = engine::optimizer::build(parsed);
  if (!built) return state.SkipWithError(built.error().message.c_str());
  const auto& optimizer = *built;
  const std::size_t planes = optimizer.state_floats_per_parameter();
  std::vector<float> gradient(floats, 0.5F), before(floats, 1.0F), after(in_place ? 0 : floats, 1.0F),
      held(floats * planes);
  optimizer.start_state(held);
  std::uint64_t step = 0;
  for (auto _ : state)
    optimizer.update({.step = {step++}, .lr = 1e-6, .streams = !in_place}, gradient, before,
                     in_place ? before : after, held);
  set_bytes(state, 3 + 2 * planes); // reads gradient, parameters and state, writes parameters and state
}

const bool registered = [] {
  benchmark::RegisterBenchmark("memory/read", read_only);
  benchmark::RegisterBenchmark("memory/copy", copy);
  benchmark::RegisterBenchmark("memory/add", add_in_place);
  for (const auto& [name, specification] :
       {std::pair("sgd", "sgd { lr: 0.05 }"), std::pair("momentum", "sgd { lr: 0.05 momentum: 0.9 }"),
        std::pair("adagrad", "adagrad {}"), std::pair("rmsprop", "rmsprop {}"), std::pair("adam", "adam {}")})
    for (const bool in_place : {false, true})
      benchmark::RegisterBenchmark(
          (std::string("update/") + name + (in_place ? "/in_place" : "")).c_str(),
          [text = specification, in_place](benchmark::State& state) { update(state, text, in_place); });
  return true;
}();

} // namespace
