#include "data/prefetcher.hpp"

#include <algorithm>
#include <chrono>
#include <dlrun/check.hpp>

namespace dlrun::data {
namespace {

// Waiting for the background read costs nothing but time; reading it once more is always possible. So the
// wait is short.
constexpr std::chrono::milliseconds wait_for_read{200};

} // namespace

prefetcher::prefetcher(std::shared_ptr<const dataset> data, sampler order, std::size_t depth)
    : data_(std::move(data))
    , order_(std::move(order))
    , depth_(depth) {
  DLRUN_CHECK(depth_ >= 1, "a prefetcher without buffers");
  DLRUN_CHECK(data_ != nullptr && data_->record_count() == order_.options().record_count,
              "the sampler counts {} records, the data set has others", order_.options().record_count);
  thread_ = std::thread([this] { run(); });
}

prefetcher::~prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<prefetcher::entry> prefetcher::find(step_id step, slot_id slot) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) {
    return e->batch.step == step && e->batch.slot == slot;
  });
  return found == entries_.end() ? nullptr : *found;
}

std::shared_ptr<prefetcher::entry> prefetcher::next_waiting() const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [](const auto& e) { return e->now == state::waiting; });
  return found == entries_.end() ? nullptr : *found;
}

void prefetcher::drop(const std::shared_ptr<entry>& what) { std::erase(entries_, what); }

void prefetcher::request(step_id step, slot_id slot) {
  {
    const std::lock_guard lock(mutex_);
    if (find(step, slot) != nullptr) return;
    auto fresh = std::make_shared<entry>();
    if (entries_.size() >= depth_) {
      // Only the reading thread still uses an entry that is being read; all others give their buffers to the
      // new one.
      if (entries_.front()->now != state::reading) std::swap(fresh->batch, entries_.front()->batch);
      entries_.pop_front();
    }
    fresh->batch.step = step;
    fresh->batch.slot = slot;
    entries_.push_back(std::move(fresh));
  }
  changed_.notify_all();
}

void prefetcher::take(step_id step, slot_id slot, microbatch& out) {
  {
    std::unique_lock lock(mutex_);
    if (const auto found = find(step, slot)) {
      if (found->now == state::reading)
        changed_.wait_for(lock, wait_for_read, [&] { return found->now == state::ready; });
      drop(found);
      if (found->now == state::ready) {
        std::swap(out, found->batch);
        return;
      }
    }
  }
  out.step = step;
  out.slot = slot;
  read(out);
}

void prefetcher::read(microbatch& batch) const {
  std::vector<std::uint64_t> indices;
  order_.records(batch.step, batch.slot, indices);
  batch.count = indices.size();
  batch.records.resize(indices.size() * data_->record_values());
  batch.labels.resize(indices.size());
  data_->read(indices, batch.records, batch.labels);
}

void prefetcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next_waiting() != nullptr; });
    if (stopping_) return;
    const auto work = next_waiting();
    work->now = state::reading;
    lock.unlock();
    read(work->batch);
    lock.lock();
    work->now = state::ready;
    changed_.notify_all();
  }
}

} // namespace dlrun::data
