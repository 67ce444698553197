#include "engine/cuda/step_graphs.hpp"

#include <algorithm>
#include <tuple>

namespace dlrun::engine {

using kernels::cuda::lane;
using kernels::cuda::step;

void step_graphs::run(std::span<const step> steps) {
  if (steps.size() < 2 || !refused_.empty()) return run_one_by_one(steps);
  auto* const found = find(steps);
  if (found == nullptr) {
    keep(steps);
    return run_one_by_one(steps);
  }
  found->last_used = ++used_;
  if (found->made == nullptr && !make(*found)) return run_one_by_one(steps);
  on_.run(*found->made);
}

step_graphs::kept_run* step_graphs::find(std::span<const step> steps) {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const auto at = (next_ + i) % kept_.size();
    if (!std::ranges::equal(kept_[at].steps, steps)) continue;
    next_ = at + 1;
    return &kept_[at];
  }
  return nullptr;
}

void step_graphs::keep(std::span<const step> steps) {
  kept_run made{{steps.begin(), steps.end()}, nullptr, ++used_};
  if (kept_.size() < runs_max) return kept_.push_back(std::move(made));
  auto& oldest = *std::ranges::min_element(kept_, {}, &kept_run::last_used);
  if (oldest.made != nullptr) std::ignore = on_.finish(lane::compute); // it may still be there
  oldest = std::move(made);
}

bool step_graphs::make(kept_run& of) {
  auto made = on_.make_graph(lane::compute, of.steps);
  if (!made) {
    refused_ = made.error().message;
    return false;
  }
  of.made = std::move(*made);
  return true;
}

void step_graphs::run_one_by_one(std::span<const step> steps) {
  for (const auto& one : steps) on_.run(lane::compute, one);
}

} // namespace dlrun::engine
