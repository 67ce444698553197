#include "kernels/cuda/run_kernels.hpp"

#include "kernels/cuda/columns.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/index.hpp"
#include "kernels/cuda/loss.hpp"
#include "kernels/cuda/move.hpp"
#include "kernels/cuda/norm.hpp"
#include "kernels/cuda/pool.hpp"
#include "kernels/cuda/softmax.hpp"

#include <variant>

namespace dlrun::kernels::cuda {
namespace {

struct to_kernels {
  cudaStream_t on;
  template <class Step>
  void operator()(const Step& what) const {
    run(on, what);
  }
  void operator()(const product&) const {}
  void operator()(const convolution&) const {}
};

} // namespace

void run_kernels(cudaStream_t on, const step& what) { std::visit(to_kernels{on}, what); }

} // namespace dlrun::kernels::cuda
