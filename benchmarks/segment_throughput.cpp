// The tensor channel between two processes of a host: what a worker does to get a PS shard's
// parameters, beside memcpy of as many bytes from and to memory of its own.
//   build/release/bin/segment_throughput
#include "benchmarks/buffer_sizes.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace {

using namespace dlrun;
using namespace dlrun::benchmarks;

void memory_copy(benchmark::State& state) {
  const std::vector<float> from(floats_of(state), 1.0F);
  std::vector<float> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  set_bytes(state);
}

/// The segment is mapped a second time, read-only, as it is in a worker's process.
void segment_copy(benchmark::State& state) {
  const auto floats = floats_of(state);
  auto writer = transport::parameter_writer::create(floats);
  if (!writer) return state.SkipWithError(writer.error().message.c_str());
  std::ranges::fill(writer->begin_write({0}, {0}), 1.0F);
  writer->publish();
  auto mapped = transport::segment::adopt(base::unique_fd{::dup(writer->shared().fd())},
                                          transport::parameter_segment_bytes(floats));
  if (!mapped) return state.SkipWithError(mapped.error().message.c_str());
  const auto reader = transport::parameter_reader::open(std::move(*mapped), floats);
  if (!reader) return state.SkipWithError(reader.error().message.c_str());
  std::vector<float> to(floats);
  for (auto _ : state) {
    if (!reader->copy({0}, {0}, to)) return state.SkipWithError("the version is not served");
    benchmark::ClobberMemory();
  }
  set_bytes(state);
}

BENCHMARK(memory_copy)->Apply(sizes);
BENCHMARK(segment_copy)->Apply(sizes);

} // namespace
