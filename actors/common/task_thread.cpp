#include "actors/common/task_thread.hpp"

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
  }
  changed_.notify_one();
}

void task_thread::loop() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr; // what it holds is freed here, not under the lock
    lock.lock();
  }
}

} // namespace dlrun::common
