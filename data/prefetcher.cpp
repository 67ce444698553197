#include "data/prefetcher.hpp"

#include <algorithm>
#include <chrono>
#include <dlrun/check.hpp>
#include <pthread.h>

namespace dlrun::data {
namespace {

// Waiting for the background read costs nothing but time; reading it once more is always possible.
// So the wait is short.
constexpr std::chrono::milliseconds wait_for_read{200};

} // namespace

result<void> read_microbatch(const dataset& data, std::span<const std::uint64_t> indices, microbatch& out) {
  const auto values = static_cast<std::size_t>(data.target_values());
  const bool classes = data.targets() == target_kind::classes && values > 0;
  out.count = indices.size();
  out.records.resize(indices.size() * data.record_values());
  out.classes.resize(classes ? indices.size() : 0);
  out.values.resize(classes ? 0 : indices.size() * values);
  return data.read(indices, out.records, {.classes = out.classes, .values = out.values});
}

prefetcher::prefetcher(std::shared_ptr<const dataset> data, sampler order, std::size_t depth,
                       std::optional<augmentation> change, reading_listener tell)
    : data_(std::move(data))
    , order_(std::move(order))
    , depth_(depth)
    , change_(std::move(change))
    , tell_(std::move(tell)) {
  DLRUN_CHECK(depth_ >= 1, "a prefetcher without buffers");
  DLRUN_CHECK(data_ != nullptr && data_->record_count() == order_.options().record_count,
              "the sampler counts {} records, the data set has others", order_.options().record_count);
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "prefetch");
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
      // Only the reading thread still uses an entry that is being read; all others give their
      // buffers to the new one.
      if (entries_.front()->now != state::reading) std::swap(fresh->batch, entries_.front()->batch);
      entries_.pop_front();
    } else if (!spare_.empty()) {
      fresh->batch = std::move(spare_.back());
      spare_.pop_back();
    }
    fresh->batch.step = step;
    fresh->batch.slot = slot;
    entries_.push_back(std::move(fresh));
  }
  changed_.notify_all();
}

result<void> prefetcher::take(step_id step, slot_id slot, microbatch& out) {
  {
    std::unique_lock lock(mutex_);
    if (const auto found = find(step, slot)) {
      if (found->now == state::reading)
        changed_.wait_for(lock, wait_for_read, [&] { return found->now == state::ready; });
      drop(found);
      if (found->now == state::ready) {
        std::swap(out, found->batch);
        if (entries_.size() + spare_.size() < depth_) spare_.push_back(std::move(found->batch));
        return found->outcome;
      }
    }
  }
  out.step = step;
  out.slot = slot;
  return read(out);
}

result<void> prefetcher::read(microbatch& batch) const {
  std::vector<std::uint64_t> indices;
  order_.records(batch.step, batch.slot, indices);
  return read_records(indices, batch);
}

result<void> prefetcher::read_some(step_id step, slot_id slot, std::span<const std::uint32_t> places,
                                   microbatch& out) const {
  std::vector<std::uint64_t> all;
  order_.records(step, slot, all);
  std::vector<std::uint64_t> indices;
  for (const auto place : places) indices.push_back(all.at(place));
  out.step = step;
  out.slot = slot;
  return read_records(indices, out);
}

result<void> prefetcher::read_records(std::span<const std::uint64_t> indices, microbatch& batch) const {
  if (auto done = read_microbatch(*data_, indices, batch); !done) return done;
  if (change_) change_->apply(order_.options().seed, batch.step, batch.slot, batch.count, batch.records);
  return {};
}

void prefetcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next_waiting() != nullptr; });
    if (stopping_) return;
    const auto work = next_waiting();
    work->now = state::reading;
    lock.unlock();
    if (tell_) tell_(work->batch.step, work->batch.slot, true);
    auto outcome = read(work->batch);
    if (tell_) tell_(work->batch.step, work->batch.slot, false);
    lock.lock();
    work->outcome = std::move(outcome);
    work->now = state::ready;
    changed_.notify_all();
  }
}

} // namespace dlrun::data
