/// How much the benchmarks of the tensor channel move at a time.
#pragma once

#include <benchmark/benchmark.h>
#include <cstddef>

namespace dlrun::benchmarks {

/// 16, 64 and 256 MiB.
inline void sizes(benchmark::internal::Benchmark* one) {
  for (const int mebibytes : {16, 64, 256}) one->Arg(mebibytes);
}

inline std::size_t floats_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0)) * (std::size_t{1} << 20) / sizeof(float);
}

/// That much was moved in each iteration.
inline void set_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * (state.range(0) << 20));
}

} // namespace dlrun::benchmarks
