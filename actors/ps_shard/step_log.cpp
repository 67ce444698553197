#include "actors/ps_shard/step_log.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace dlrun::ps_shard {
namespace {

timeline_id newest_timeline(const persistence::shard_store& store) {
  const auto history = store.history();
  return history.empty() ? timeline_id{0} : history.back().timeline;
}

} // namespace

bool is_full(const error& why) {
  return why.code == error_code::disk_full || why.code == error_code::limit_exceeded;
}

step_log::step_log(persistence::shard_store& store, step_log_events events,
                   std::chrono::milliseconds retry_after)
    : store_(store)
    , events_(std::move(events))
    , retry_after_(retry_after)
    , timeline_(newest_timeline(store))
    , logged_(version_before(store.next_step()))
    , thread_([this] { loop(); }) {
  ::pthread_setname_np(thread_.native_handle(), "log");
}

step_log::~step_log() {
  stop();
  thread_.join();
}

void step_log::stop() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
}

void step_log::append(step_to_log step) {
  {
    const std::scoped_lock lock{mutex_};
    if (step.timeline < timeline_) return; // it was on its way while the rewind was ordered
    waiting_.push_back(std::move(step));
  }
  changed_.notify_all();
}

void step_log::between_writes(std::function<void()> what) {
  {
    const std::scoped_lock lock{mutex_};
    tasks_.push_back(std::move(what));
  }
  changed_.notify_all();
}

void step_log::interrupt(timeline_id timeline, std::function<void()> what) {
  {
    const std::scoped_lock lock{mutex_};
    waiting_.clear();
    ++interruptions_;
    timeline_ = std::max(timeline_, timeline);
    tasks_.push_back(std::move(what));
  }
  changed_.notify_all();
}

bool step_log::wait_for(timeline_id timeline, version_id version) {
  std::unique_lock lock{mutex_};
  const auto is_over = [&] { return stopping_ || broken_ || timeline_ > timeline; };
  changed_.wait(lock, [&] { return is_over() || logged_ >= version; });
  return !is_over();
}

void step_log::loop() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty() || (!broken_ && !waiting_.empty()); });
    if (stopping_) return;
    if (tasks_.empty()) {
      write(lock);
      continue;
    }
    const auto what = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    what();
    lock.lock();
    logged_ = version_before(store_.next_step());
    changed_.notify_all();
  }
}

/// Everything that waits becomes one write. What the disk has no room for is tried again later.
void step_log::write(std::unique_lock<std::mutex>& lock) {
  const auto steps = waiting_;
  const auto before = interruptions_;
  lock.unlock();
  const auto appended = append_all(steps);
  const bool full = !appended && is_full(appended.error());
  if (appended)
    events_.committed(steps.back().timeline, version_after(steps.back().step));
  else if (!full)
    events_.broken(appended.error());
  note_stall(full ? std::optional{appended.error()} : std::nullopt);
  lock.lock();
  if (full) {
    changed_.wait_for(lock, retry_after_, [&] { return stopping_ || !tasks_.empty(); });
    return;
  }
  if (interruptions_ == before)
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(steps.size()));
  broken_ = !appended;
  if (appended) logged_ = version_after(steps.back().step);
  changed_.notify_all();
}

/// A worker takes its buffer back only when the step is committed, or void because of a rewind. So
/// one that changed meanwhile belongs to a start of this shard that was overtaken, or to a record
/// that the rewind drops: it is never reported as committed.
result<void> step_log::append_all(const std::vector<step_to_log>& steps) {
  std::vector<persistence::log_record> records;
  records.reserve(steps.size());
  for (const auto& one : steps)
    records.push_back({one.step, one.timeline, one.extra, std::as_bytes(one.root)});
  if (auto appended = store_.append(records); !appended) return appended;
  for (const auto& one : steps)
    if (one.intact && !one.intact())
      return fail(error_code::protocol,
                  fmt::format("the gradient of step {} changed while it was logged", one.step));
  return {};
}

/// Told when it changes.
void step_log::note_stall(const std::optional<error>& why) {
  if (std::exchange(stalled_, why.has_value()) != why.has_value()) events_.stalled(why);
}

} // namespace dlrun::ps_shard
