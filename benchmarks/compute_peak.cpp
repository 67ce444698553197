// The floor of whatever computes: most single-precision operations a second of one core, by
// independent multiply-adds in registers, for each width of vectors that the core has.
//   build/release/bin/compute_peak
#include <array>
#include <benchmark/benchmark.h>
#include <immintrin.h>
#include <utility>

namespace {

constexpr std::size_t chains =
    12; ///< more than a multiply-add takes cycles, times two units; fewer than registers
constexpr std::int64_t rounds = 4096;
constexpr std::int64_t operations = 2; ///< of a multiply-add

struct wide_sum {
  __m512 value;
};
struct narrow_sum {
  __m256 value;
};

/// Each chain by its index: in a loop over them they would not stay in registers.
template <std::size_t... chain>
__attribute__((target("avx512f"))) std::int64_t wide_multiply_adds(std::index_sequence<chain...>) {
  std::array<wide_sum, chains> sums{};
  const __m512 factor = _mm512_set1_ps(0.5F), term = _mm512_set1_ps(0.25F);
  (benchmark::DoNotOptimize(sums[chain].value), ...); // else they are one
  for (std::int64_t i = 0; i < rounds; ++i)
    ((sums[chain].value = _mm512_fmadd_ps(sums[chain].value, factor, term)), ...);
  (benchmark::DoNotOptimize(sums[chain].value), ...);
  return rounds * static_cast<std::int64_t>(chains) * 16 * operations;
}

template <std::size_t... chain>
__attribute__((target("avx2,fma"))) std::int64_t multiply_adds(std::index_sequence<chain...>) {
  std::array<narrow_sum, chains> sums{};
  const __m256 factor = _mm256_set1_ps(0.5F), term = _mm256_set1_ps(0.25F);
  (benchmark::DoNotOptimize(sums[chain].value), ...); // else they are one
  for (std::int64_t i = 0; i < rounds; ++i)
    ((sums[chain].value = _mm256_fmadd_ps(sums[chain].value, factor, term)), ...);
  (benchmark::DoNotOptimize(sums[chain].value), ...);
  return rounds * static_cast<std::int64_t>(chains) * 8 * operations;
}

void peak(benchmark::State& state, bool has_instructions,
          std::int64_t (*compute)(std::make_index_sequence<chains>)) {
  if (!has_instructions) return state.SkipWithError("this processor has no such instructions");
  std::int64_t done = 0;
  for (auto _ : state) done += compute({});
  state.counters["flops"] = benchmark::Counter(static_cast<double>(done), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(peak, AVX2, __builtin_cpu_supports("fma"), multiply_adds);
BENCHMARK_CAPTURE(peak, AVX512, __builtin_cpu_supports("avx512f"), wide_multiply_adds);

} // namespace
