// A kernel that lacks a barrier, and the same with it: what ThreadSanitizer is to tell apart.
#include "kernels/cuda/stand_in/cuda_on_cpu.hpp"

#include <cstdio>
#include <cstring>

namespace dlrun::kernels::cuda {
namespace {

constexpr int threads = 64;

/// Hands each value to the next thread.
template <bool WithBarrier>
void pass_on(const int* from, int* to) {
  __shared__ int room[threads];
  room[threadIdx.x] = from[threadIdx.x];
  if constexpr (WithBarrier) __syncthreads();
  to[threadIdx.x] = room[(threadIdx.x + 1) % threads];
}

template <bool WithBarrier>
int run() {
  stand_in_lane lane({});
  int from[threads] = {}, to[threads] = {};
  launch(&lane, pass_on<WithBarrier>, 2, threads, static_cast<const int*>(from), static_cast<int*>(to));
  while (!lane.empty()) lane.advance();
  return 0;
}

} // namespace
} // namespace dlrun::kernels::cuda

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kernels_cuda_race_test with|without\n");
    return 2;
  }
  return std::strcmp(argv[1], "with") == 0 ? dlrun::kernels::cuda::run<true>()
                                           : dlrun::kernels::cuda::run<false>();
}
