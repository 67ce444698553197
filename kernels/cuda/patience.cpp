#include "kernels/cuda/patience.hpp"

namespace dlrun::kernels::cuda {

patience::verdict patience::next(time_point now, bool moved) {
  if (moved) moved_ = now;
  if (now - began_ < eager) return verdict::look_again;
  return now - moved_ >= longest ? verdict::give_up : verdict::sleep;
}

} // namespace dlrun::kernels::cuda
