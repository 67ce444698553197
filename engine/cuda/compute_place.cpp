#include "engine/cuda/compute_place.hpp"

#include "engine/compute_threads.hpp"
#include "engine/cuda/cuda_computer.hpp"

namespace dlrun::engine {

result<placed_computer> make_computer_at(const compute_place& place, std::shared_ptr<const model> model) {
  if (auto enough = may_have_threads(place.threads); !enough) return tl::unexpected(enough.error());
  if (place.cuda == nullptr) return placed_computer{make_computer(std::move(model), place.threads), "cpu"};
  auto device = place.cuda->open(place.gpu, place.arithmetic);
  if (!device) return tl::unexpected(device.error());
  auto name = device_fingerprint(**device);
  return placed_computer{make_cuda_computer(std::move(model), place.threads, std::move(*device)),
                         std::move(name)};
}

} // namespace dlrun::engine
