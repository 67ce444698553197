#include "actors/ps_shard/copy_on_write_image.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

copy_on_write_image::copy_on_write_image(std::vector<block_memory> blocks, std::size_t pool_blocks)
    : pool_(pool_blocks) {
  DLRUN_CHECK(pool_blocks >= 1, "without a pool the state could not change while it is read");
  blocks_.reserve(blocks.size());
  for (auto& memory : blocks) blocks_.push_back({memory, stage::live, {}});
}

void copy_on_write_image::copy_block(const block_memory& from, std::vector<float>& into) {
  into.resize(from.parameters.size() + from.state.size());
  const auto behind = std::ranges::copy(from.parameters, into.begin()).out;
  std::ranges::copy(from.state, behind);
}

void copy_on_write_image::preserve(std::size_t index) {
  std::unique_lock lock{mutex_};
  auto& block = blocks_.at(index);
  changed_.wait(lock, [&] {
    return abandoned_ || block.at == stage::kept || block.at == stage::done ||
           (block.at == stage::live && !pool_.empty());
  });
  if (abandoned_ || block.at != stage::live) return;
  block.at = stage::copying;
  auto copy = std::move(pool_.back());
  pool_.pop_back();
  lock.unlock();
  copy_block(block.memory, copy);
  lock.lock();
  block.copy = std::move(copy);
  block.at = stage::kept;
  changed_.notify_all();
}

/// What the reader got last goes back to the pool.
void copy_on_write_image::release_last() {
  if (next_ == 0 || blocks_[next_ - 1].at != stage::kept) return;
  auto& last = blocks_[next_ - 1];
  last.at = stage::done;
  pool_.push_back(std::move(last.copy));
  changed_.notify_all();
}

std::span<const float> copy_on_write_image::next() {
  std::unique_lock lock{mutex_};
  release_last();
  if (next_ == blocks_.size()) return {};
  auto& block = blocks_[next_++];
  changed_.wait(lock, [&] { return block.at != stage::copying; });
  if (block.at == stage::kept) return block.copy;
  block.at = stage::copying;
  lock.unlock();
  copy_block(block.memory, reader_copy_);
  lock.lock();
  block.at = stage::done;
  changed_.notify_all();
  return reader_copy_;
}

void copy_on_write_image::abandon() {
  const std::scoped_lock lock{mutex_};
  abandoned_ = true;
  changed_.notify_all();
}

std::size_t copy_on_write_image::floats() const {
  std::size_t all = 0;
  for (const auto& block : blocks_) all += block.memory.parameters.size() + block.memory.state.size();
  return all;
}

} // namespace dlrun::ps_shard
