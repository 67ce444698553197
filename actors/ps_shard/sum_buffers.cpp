#include "actors/ps_shard/sum_buffers.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

/// Buffers that are kept while nobody uses them: more are in use only while the log is behind.
constexpr std::size_t free_max = 4;

} // namespace

sum_buffers::sum_buffers(std::size_t floats)
    : floats_(floats) {}

std::shared_ptr<std::vector<float>> sum_buffers::lend() {
  std::unique_ptr<std::vector<float>> buffer;
  {
    const std::scoped_lock lock{shelf_->mutex};
    if (!shelf_->free.empty()) {
      buffer = std::move(shelf_->free.back());
      shelf_->free.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique<std::vector<float>>(floats_);
  return {buffer.release(), [weak = std::weak_ptr<shelf>(shelf_)](std::vector<float>* returned) {
            std::unique_ptr<std::vector<float>> owned(returned);
            const auto home = weak.lock();
            if (!home) return;
            const std::scoped_lock lock{home->mutex};
            if (home->free.size() < free_max) home->free.push_back(std::move(owned));
          }};
}

} // namespace dlrun::ps_shard
