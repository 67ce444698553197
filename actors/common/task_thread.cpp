#include "actors/common/task_thread.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::common {

task_thread::task_thread()
    : thread_{[this] { loop(); }} {}

task_thread::~task_thread() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void task_thread::run(std::function<void()> task) {
  {
    const std::scoped_lock lock{mutex_};
    tasks_.push_back(std::move(task));
    called_ = tasks_.size();
  }
  changed_.notify_one();
}

void task_thread::run_later(std::function<void()> task) {
  const std::scoped_lock lock{mutex_};
  tasks_.push_back(std::move(task));
}

void task_thread::run_here(std::function<void()> task) {
  std::unique_lock lock{mutex_};
  if (running_ || called_ > 0) {
    lock.unlock();
    return run(std::move(task));
  }
  tasks_.push_back(std::move(task));
  for (auto left = tasks_.size(); left > 0 && !stopping_; --left) run_next(lock);
  if (called_ > 0) changed_.notify_one(); // it was woken meanwhile, for nothing
}

/// Runs the first task, unlocked.
void task_thread::run_next(std::unique_lock<std::mutex>& lock) {
  auto task = std::move(tasks_.front());
  tasks_.pop_front();
  called_ -= std::min<std::size_t>(called_, 1);
  running_ = true;
  lock.unlock();
  task();
  task = nullptr; // what it holds is freed here, not under the lock
  lock.lock();
  running_ = false;
}

void task_thread::loop() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || (!running_ && called_ > 0); });
    if (stopping_) return;
    run_next(lock);
  }
}

} // namespace dlrun::common
