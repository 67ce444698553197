#include "actors/common/task_thread.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <array>
#include <pthread.h>
#include <sys/epoll.h>
#include <utility>

namespace dlrun::common {
namespace {

/// Doorbells that are looked at in one turn.
constexpr int bells_at_once = 64;
/// Packets of one doorbell in one turn: then the others have theirs.
constexpr int packets_at_once = 64;

result<void> watch(int epoll, int descriptor) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = descriptor;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &wanted) != 0)
    return base::fail_errno("cannot wait for a doorbell");
  return {};
}

} // namespace

task_thread::task_thread(const char* name)
    : thread_{[this] { loop(); }} {
  ::pthread_setname_np(thread_.native_handle(), name);
}

void task_thread::stop() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

// ---- tasks

void task_thread::run(std::function<void()> task) {
  {
    const std::scoped_lock lock{mutex_};
    tasks_.push_back(std::move(task));
    called_ = tasks_.size();
  }
  if (!is_current()) wake();
}

void task_thread::run_later(std::function<void()> task) {
  const std::scoped_lock lock{mutex_};
  tasks_.push_back(std::move(task));
}

void task_thread::run_here(std::function<void()> task) {
  std::unique_lock lock{mutex_};
  if (running_ || called_ > 0 || is_current()) {
    lock.unlock();
    return run(std::move(task));
  }
  tasks_.push_back(std::move(task));
  for (auto left = tasks_.size(); left > 0 && !stopping_; --left) run_next(lock);
  const bool is_called = called_ > 0; // it was woken meanwhile, for nothing
  lock.unlock();
  if (is_called) wake();
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
  while (!stopping_) {
    if (!bells_.empty()) hear(lock, false);
    if (stopping_) return;
    if (!running_ && called_ > 0)
      run_next(lock);
    else
      sleep(lock);
  }
}

void task_thread::wake() {
  std::unique_lock lock{mutex_};
  const auto* const event = place_ ? &place_->event : nullptr;
  lock.unlock();
  if (event)
    event->notify();
  else
    changed_.notify_all();
}

void task_thread::sleep(std::unique_lock<std::mutex>& lock) {
  if (place_) return hear(lock, true);
  changed_.wait(lock, [this] { return stopping_ || place_ || (!running_ && called_ > 0); });
}

// ---- doorbells

result<task_thread::waiting_place> task_thread::make_waiting_place() {
  base::unique_fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return base::fail_errno("cannot create an epoll descriptor (raise the limit of open files: ulimit -n)");
  auto event = base::wake_event::create();
  if (!event) return tl::unexpected(event.error());
  if (auto ok = watch(epoll.get(), event->fd()); !ok) return tl::unexpected(ok.error());
  return waiting_place{std::move(epoll), std::move(*event)};
}

result<void> task_thread::listen(std::shared_ptr<const transport::doorbell> bell, listener heard) {
  const int descriptor = bell->fd();
  {
    const std::scoped_lock lock{mutex_};
    if (!place_) {
      auto made = make_waiting_place();
      if (!made) return tl::unexpected(made.error());
      place_.emplace(std::move(*made));
    }
    bells_[descriptor] = std::make_shared<const heard_bell>(heard_bell{std::move(bell), std::move(heard)});
    if (auto ok = watch(place_->epoll.get(), descriptor); !ok) {
      bells_.erase(descriptor);
      return ok;
    }
  }
  changed_.notify_all(); // it may sleep in the old place still
  return {};
}

/// Takes what has come through the doorbells, unlocked.
void task_thread::hear(std::unique_lock<std::mutex>& lock, bool may_sleep) {
  const int epoll = place_->epoll.get();
  const auto* const event = &place_->event;
  lock.unlock();
  std::array<epoll_event, bells_at_once> ready;
  const int count = ::epoll_wait(epoll, ready.data(), bells_at_once, may_sleep ? -1 : 0);
  for (int i = 0; i < count; ++i) {
    if (ready[static_cast<std::size_t>(i)].data.fd == event->fd())
      event->drain();
    else
      take_packets(ready[static_cast<std::size_t>(i)].data.fd);
  }
  lock.lock();
}

void task_thread::take_packets(int descriptor) {
  std::shared_ptr<const heard_bell> one;
  {
    const std::scoped_lock lock{mutex_};
    const auto found = bells_.find(descriptor);
    if (found == bells_.end() || stopping_) return;
    one = found->second;
  }
  std::array<std::byte, transport::doorbell_packet_bytes_max> room;
  for (int i = 0; i < packets_at_once; ++i) {
    const auto taken = one->bell->take(room);
    if (taken.what == transport::doorbell::outcome::nothing) return;
    const bool is_closed = taken.what == transport::doorbell::outcome::closed;
    if (one->heard(is_closed ? std::nullopt : std::optional(taken.packet)) && !is_closed) continue;
    const std::scoped_lock lock{mutex_};
    ::epoll_ctl(place_->epoll.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    bells_.erase(descriptor);
    return;
  }
}

} // namespace dlrun::common
