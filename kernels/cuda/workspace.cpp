#include "kernels/cuda/workspace.hpp"

#include "kernels/cuda/cuda_call.hpp"

#include <utility>

namespace dlrun::kernels::cuda {

workspace::~workspace() { static_cast<void>(cudaFree(memory_)); }

result<void*> workspace::room(cudaStream_t of, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes <= size_) return memory_;
  wanted_ = bytes;
  const auto used = cuda_call(cudaStreamSynchronize(of), "what was to be computed before");
  if (!used) return tl::unexpected(used.error());
  size_ = 0;
  const auto freed = cuda_call(cudaFree(std::exchange(memory_, nullptr)), "giving memory back");
  if (!freed) return tl::unexpected(freed.error());
  const auto got =
      cuda_call(cudaMalloc(&memory_, bytes), fmt::format("{} bytes for a library to compute in", bytes));
  if (!got) return tl::unexpected(got.error());
  size_ = bytes;
  return memory_;
}

} // namespace dlrun::kernels::cuda
