/// From a step to the kernel that computes it.
#pragma once

#include "kernels/cuda/columns.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/index.hpp"
#include "kernels/cuda/loss.hpp"
#include "kernels/cuda/move.hpp"
#include "kernels/cuda/norm.hpp"
#include "kernels/cuda/pool.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/softmax.hpp"
#include "kernels/cuda/steps.hpp"

#include <concepts>
#include <variant>

namespace dlrun::kernels::cuda {

/// Whether a library computes the step: there is no kernel of it here.
template <class Step>
constexpr bool of_library = std::same_as<Step, product> || std::same_as<Step, convolution>;

/// Puts the kernels of `what` into the queue, or calls `library(on, what)` where of_library.
/// `stored`: of the device.
template <class Library>
void run_step(queue on, precision stored, const step& what, Library&& library) {
  std::visit(
      [&]<class Step>(const Step& one) {
        if constexpr (of_library<Step>)
          library(on, one);
        else if constexpr (requires { run(on, stored, one); })
          run(on, stored, one);
        else
          run(on, one);
      },
      what);
}

} // namespace dlrun::kernels::cuda
